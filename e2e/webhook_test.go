package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// hookRequest is one request to a webhook.
type hookRequest struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// hookReceiver records the requests.
type hookReceiver struct {
	mu  sync.Mutex
	got []hookRequest
}

func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender was killed
	}

	headers := map[string]string{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers[name] = request.Header.Get(name)
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.got = append(r.got, hookRequest{headers, string(body)})
	w.WriteHeader(http.StatusNoContent)
}

func (r *hookReceiver) requests() []hookRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]hookRequest(nil), r.got...)
}

// ids counts the requests of each event and checks that the first requests of an account's events
// came in order.
func (r *hookReceiver) ids(t *testing.T) map[string]int {
	t.Helper()
	times, last := map[string]int{}, map[string]string{}
	for _, request := range r.requests() {
		var e event
		if err := json.Unmarshal([]byte(request.Body), &e); err != nil || e.ID != request.Headers["webhook-id"] {
			t.Fatalf("request %v: %v", request, err)
		}

		times[e.ID]++
		if times[e.ID] == 1 {
			if e.ID <= last[e.AccountID] {
				t.Errorf("account %s: %s after %s", e.AccountID, e.ID, last[e.AccountID])
			}
			last[e.AccountID] = e.ID
		}
	}

	return times
}

// hook holds the fields of a webhook that tests read.
type hook struct{ ID, Secret, Status string }

// createHook creates a webhook of the account demo.
func (n *node) createHook(t *testing.T, url string) (made hook) {
	t.Helper()

	key := n.cli(t, "apikey", "create", "--account", "demo", "--scope", "admin")
	var created answer
	eventually(t, "the key to work", func() error {
		created = n.mustCall(t, http.MethodPost, "/api/v2/webhooks", map[string]string{"X-API-Key": key},
			`{"url":"`+url+`"}`)
		if created.status != http.StatusCreated {
			return fmt.Errorf("%s", created)
		}
		return nil
	})

	if err := json.Unmarshal(created.body, &made); err != nil {
		t.Fatal(err)
	}

	return made
}

// A delivering node is killed with kill -9 and restarted, twice, while records of several
// accounts arrive: each event is delivered, in order per account.
func TestAKilledNodesWebhooksGoOn(t *testing.T) {
	t.Parallel()
	settings, prefix := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_KAFKA_PARTITIONS", "6", "TRUNKLINE_WEBHOOK_ALLOW_NETWORKS",
		"127.0.0.0/8")
	killed := newNode(t, "killed", withSettings(settings, "TRUNKLINE_ROLES", "api"))
	c := newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix,
		newNode(t, "survivor", withSettings(settings, "TRUNKLINE_ROLES", "ingest,normalizer,fanout,api")))
	received := &hookReceiver{}
	receiver := httptest.NewServer(received)
	t.Cleanup(receiver.Close)

	posters := make([]*poster, 12)
	for i := range posters {
		id := fmt.Sprint("hooks-", i)
		c.ingestNode.cli(t, "account", "create", id, "--id", id, "--domain", id+".test", "--parent", "demo")
		posters[i] = &poster{name: id, account: id, key: c.key, node: c.ingestNode, every: 300 * time.Millisecond}
	}

	c.ingestNode.createHook(t, receiver.URL)
	s := c.ingestNode.subscribe(t,
		subscription{paths: apiPaths, token: c.ingestNode.login(t, apiPaths, user("alice")), sse: true})
	load := startPosters(t, posters...)

	for range 2 {
		killed.startProcess(t)
		killed.awaitReady(t)
		eventually(t, "the node to deliver", func() error {
			_, text, err := killed.probe("/metrics")
			sent := strings.Contains(text, `trunkline_webhook_requests_total{result="ok"} `) &&
				!strings.Contains(text, `trunkline_webhook_requests_total{result="ok"} 0`)
			if err == nil && !sent {
				err = fmt.Errorf("no request yet")
			}
			return err
		})

		killed.kill(t)
		load.awaitMore(t, 10)
	}

	load.stop()
	all := load.awaitAll(t, s, "")
	eventually(t, "every event at the webhook", func() error {
		got := received.ids(t)
		for _, e := range all {
			if got[e.ID] == 0 {
				return fmt.Errorf("%s is missing, %d events received", e.ID, len(got))
			}
		}

		return nil
	})

	t.Logf("%d events in %d requests", len(all), len(received.requests()))
}

// The programs read {secret, requests} and verify each request; they must refuse a changed body.
const (
	verifyInNode = `import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const { Webhook } = createRequire(process.argv[2] + "/")("standardwebhooks");
const { secret, requests } = JSON.parse(readFileSync(process.argv[3]));
const webhook = new Webhook(secret);
for (const { headers, body } of requests) {
  if (webhook.verify(body, headers).id !== headers["webhook-id"]) throw new Error(body);
  let refused = false;
  try { webhook.verify(body + " ", headers); } catch { refused = true; }
  if (!refused) throw new Error("a changed body is accepted");
}
console.log(requests.length);
`
	verifyInPython = `import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
hook = json.load(open(sys.argv[1]))
webhook = Webhook(hook["secret"])
for request in hook["requests"]:
    assert webhook.verify(request["body"], request["headers"])["id"] == request["headers"]["webhook-id"]
    try:
        webhook.verify(request["body"] + " ", request["headers"])
        raise SystemExit("a changed body is accepted")
    except WebhookVerificationError:
        pass
print(len(hook["requests"]))
`
)

// The packages standardwebhooks of npm and PyPI verify a server's signatures.
func TestWebhooksAreVerifiedByOthers(t *testing.T) {
	t.Parallel()
	nodeModules, python := nodeFolder(t), pythonFolder(t)
	n := newNode(t, "embedded",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"})
	c := newCluster(t, nil, "", n)
	received := &hookReceiver{}
	receiver := httptest.NewServer(received)
	t.Cleanup(receiver.Close)
	made := n.createHook(t, receiver.URL)

	const events = 5
	for i := range events {
		n.postAccepted(t, c.key, "svc.cc", "application/json", record("demo", i), 1)
	}

	eventually(t, "the events at the webhook", func() error {
		if got := len(received.ids(t)); got < events {
			return fmt.Errorf("%d events", got)
		}
		return nil
	})

	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{"secret": made.Secret, "requests": received.requests()})
	if err != nil {
		t.Fatal(err)
	}

	files := map[string]string{"hook.json": string(text), "verify.mjs": verifyInNode, "verify.py": verifyInPython}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, command := range [][]string{
		{"node", "verify.mjs", nodeModules, "hook.json"},
		{filepath.Join(python, "bin", "python"), "verify.py", "hook.json"},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		if output, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) == "0" {
			t.Errorf("%s: %v: %s", command[0], err, output)
		}
	}
}
