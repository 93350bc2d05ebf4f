package kazoo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// crossbarServer is a Crossbar with the documents by path.
type crossbarServer struct {
	*httptest.Server
	mu        sync.Mutex
	documents map[string]any
	root      string   // the account of the API key
	posts     []string // method, path and data of the POST requests that it got
	logins    int
	expired   bool
}

func startCrossbar(t *testing.T, documents map[string]any) *crossbarServer {
	t.Helper()
	c := &crossbarServer{documents: documents, root: rootID}
	c.Server = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.Close)
	return c
}

// set sets the document of a path; nil: Crossbar fails.
func (c *crossbarServer) set(path string, data any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents[path] = data
}

const apiKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (c *crossbarServer) answer(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()

	reply := func(code int, data any) {
		w.WriteHeader(code)
		word := "success"
		if code >= 400 {
			word = "error"
		}

		_ = json.NewEncoder(w).Encode(
			map[string]any{"auth_token": "token", "data": data, "request_id": "r", "revision": "v", "status": word})
	}

	if r.URL.Path == "/v2/api_auth" && r.Method == http.MethodPut {
		var body struct {
			Data struct {
				APIKey string `json:"api_key"`
			}
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Data.APIKey != apiKey {
			reply(http.StatusUnauthorized, map[string]any{"message": "invalid_credentials"})
			return
		}

		c.logins++
		c.expired = false
		reply(http.StatusCreated,
			map[string]any{"account_id": c.root, "owner_id": "o", "is_reseller": true, "language": "en-US"})

		return
	}

	if r.Header.Get("X-Auth-Token") != "token" || c.expired {
		reply(http.StatusUnauthorized, map[string]any{"message": "invalid_credentials"})
		return
	}

	if r.Method == http.MethodPost {
		var body struct {
			Data json.RawMessage `json:"data"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		c.posts = append(c.posts, r.Method+" "+r.URL.Path+" "+string(body.Data))
	}

	data, ok := c.documents[r.URL.Path]
	switch {
	case !ok:
		reply(http.StatusNotFound, map[string]any{"message": "bad_identifier"})
	case data == nil:
		reply(http.StatusInternalServerError, map[string]any{"message": "datastore_unreachable"})
	default:
		reply(http.StatusOK, data)
	}
}

// Ids of accounts.
const (
	rootID = "00000000000000000000000000000001"
	acmeID = "00000000000000000000000000000002"
	subID  = "00000000000000000000000000000003"
)

// accountTree are the documents of the accounts: root above acme above sub.
func accountTree() map[string]any {
	return map[string]any{
		"/v2/accounts/" +
			rootID: map[string]any{"id": rootID, "name": "Root", "realm": "root.example.com", "is_reseller": true},
		"/v2/accounts/" + rootID + "/descendants": []any{
			map[string]any{"id": subID, "name": "Sub", "realm": "sub.example.com", "tree": []string{rootID, acmeID}},
			map[string]any{"id": acmeID, "name": "Acme", "realm": "acme.example.com", "tree": []string{rootID}},
		},
	}
}
