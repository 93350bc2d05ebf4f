package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSchemathesis runs schemathesis, a program from PyPI, which generates requests from the
// server's OpenAPI description: valid and invalid ones to every operation, also in sequences,
// with all credentials, with an API key alone, and with none. No response may be a server error,
// have an undescribed status, type or shape, or accept a request that the description forbids.
//
// With all credentials it omits the logout, which would end the session for later requests. From
// a stream it reads one event of the demonstration traffic.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	tool(t, "python3")
	folder := installed(t, schemathesisPackages)
	c := embeddedCluster(t)
	n := c.nodes[0]
	startForeign(t, n.settings, program(t), "demo", "--rate", "10")

	// The requests concern the tested account: they cannot delete the key, which belongs to the
	// account above it, and webhooks that they create get no events.
	n.cli(t, "account", "create", "above", "--id", "above", "--domain", "above.local")
	n.cli(t, "account", "create", "tested", "--id", "tested", "--domain", "tested.local", "--parent", "above")
	n.cliWith(t, password+"\n", "user", "create", "lead", "--account", "tested", "--role", "admin", "--presence-id",
		"7001", "--password-stdin")
	key := n.cli(t, "apikey", "create", "--account", "above", "--scope", "ingest,subscribe,read,recordings,calls,admin")
	c.awaitKey(t, key)

	var session struct {
		Token string `json:"access_token"`
	}
	eventually(t, "the user to be known", func() error {
		a := n.mustCall(t, http.MethodPost, "/ucp/v2/login", nil,
			`{"username":"lead","password":"`+password+`","domain":"tested.local"}`)
		if err := json.Unmarshal(a.body, &session); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	channel := n.login(t, apiPaths, user("alice"))

	type credential struct {
		setting string
		headers map[string]string
		path    string // path of the operation
	}
	portal := credential{`portalToken = { bearer = "` + session.Token + `" }`, bearer(session.Token),
		"/api/v2/accounts"}

	events := credential{`channelToken = { bearer = "` + channel + `" }`, bearer(channel), apiPaths.stats}
	ofKey := credential{`apiKey = { api_key = "` + key + `" }`, map[string]string{"X-API-Key": key}, "/api/v2/accounts"}
	for _, run := range []struct {
		name        string
		credentials []credential
		args        []string
	}{
		{"all credentials", []credential{portal, events, ofKey},
			[]string{"--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "3", "--exclude-path-regex",
				"/logout$"}},
		{"an API key", []credential{ofKey}, []string{"--phases", "fuzzing", "--max-examples", "1"}},
		{"no credentials", nil, []string{"--phases", "fuzzing", "--max-examples", "1"}},
	} {
		t.Run(run.name, func(t *testing.T) {
			settings := readFile(t, "testdata/schemathesis.toml")
			if len(run.credentials) > 0 {
				settings += "\n[auth.openapi]\n"
			}

			for _, c := range run.credentials {
				settings += c.setting + "\n"
			}

			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "schemathesis.toml"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}

			args := append([]string{"run", n.url + "/openapi.json", "--tls-verify",
				filepath.Join(n.dir, "tls", "cert.pem"), "--no-color"}, run.args...)
			cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "bin", "schemathesis"), args...)
			cmd.Dir, cmd.Env = dir, environment(nil)
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, output)
			}

			_, summary, _ := strings.Cut(string(output), "= SUMMARY =")
			t.Log(summary)
			for _, c := range run.credentials { // they must have stayed valid until the end
				if a := n.mustCall(t, http.MethodGet, c.path, c.headers, ""); a.status != http.StatusOK {
					t.Errorf("%s after all requests: %s", c.path, a)
				}
			}
		})
	}
}
