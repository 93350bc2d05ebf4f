package crossbar

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestErrorsOfALogin(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		length int  // of the header Content-Length; 0: that of body
		key    bool // the error says that the API key was refused
	}{
		"refused":             {status: http.StatusUnauthorized, body: `{}`, key: true},
		"forbidden":           {status: http.StatusForbidden, body: `{}`, key: true},
		"an unknown resource": {status: http.StatusNotFound, body: `{}`, key: true},
		"no token":            {status: http.StatusCreated, body: `{"data":{"account_id":"a"}}`, key: true},
		"no JSON":             {status: http.StatusOK, body: `<html>`},
		"cut short":           {status: http.StatusCreated, body: `{"auth_token":"t"`, length: 100},
		"failed":              {status: http.StatusInternalServerError, body: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/api_auth" {
					t.Errorf("request of %s without a token", r.URL.Path)
				}
				if c.length > 0 {
					w.Header().Set("Content-Length", fmt.Sprint(c.length))
				}

				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()

			err := New(server.URL, "key", time.Minute, server.Client()).Get(t.Context(), AccountPath("a"), nil)
			if err == nil || errors.Is(err, ErrKeyRefused) != c.key {
				t.Errorf("refused key: want %v, got %v", c.key, err)
			}
			if errors.Is(err, ErrUnreadable) {
				t.Errorf("the request counts as carried out: %v", err)
			}
		})
	}
}
