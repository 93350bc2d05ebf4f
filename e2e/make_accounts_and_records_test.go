package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// awaitKey waits until the server accepts a key.
func (c *cluster) awaitKey(t testing.TB, key string) {
	t.Helper()
	eventually(t, "an API key to work", func() error {
		a := c.ingestNode.post(t, key, "svc.cc", typeJSON, "[]")
		if a.status != http.StatusAccepted {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
}

// createAccountAndUser creates an account below parent, with a user named agent, and returns the user's credentials
// when all nodes have both.
func (c *cluster) createAccountAndUser(t testing.TB, id, parent string) credentials {
	t.Helper()
	domain := id + ".test"
	created := c.ingestNode.cli(t, "account", "create", id, "--id", id, "--domain", domain, "--parent", parent)
	if created != id {
		t.Fatalf("account create prints %q", created)
	}

	c.ingestNode.cliWith(t, password+"\n", "user", "create", "agent", "--account", id, "--password-stdin")
	w := credentials{Username: "agent", Password: password, Domain: domain}
	for _, n := range c.channelNodes {
		eventually(t, "a new user to log in", func() error {
			if a := n.tryLogin(t, apiPaths, w); a.status != http.StatusOK {
				return fmt.Errorf("%s", a)
			}
			return nil
		})
	}

	return w
}

// record returns a numbered record in the format svc.cc.
func record(account string, n int) string {
	return fmt.Sprintf(`{"Account-ID":%q,"Type":"svc_cc_queue_on_call_event","Queue-ID":"support","n":%d}`, account, n)
}

// number returns the n of a record's event.
func number(t testing.TB, e event) int {
	t.Helper()
	var data struct {
		N *int `json:"n"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || data.N == nil {
		t.Fatalf("no number in %s", e.Data)
	}
	return *data.N
}

func numbers(t testing.TB, events []event) []int {
	t.Helper()
	list := make([]int, len(events))
	for i, e := range events {
		list[i] = number(t, e)
	}
	return list
}

// hasRecord reports whether the data of an event is a record as it was sent, behind whose members a
// call event may have those of the specification.
func hasRecord(data []byte, record string) bool {
	if string(data) == record {
		return true
	}
	own := strings.TrimRight(strings.TrimSuffix(strings.TrimSpace(record), "}"), " ")
	return bytes.HasPrefix(data, []byte(own)) && bytes.HasSuffix(data, []byte("}")) &&
		bytes.Contains(data[len(own):], []byte(`,"`))
}
