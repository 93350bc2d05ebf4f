package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"trunkline/internal/kafka"
)

// deadLetter is a line of `deadletter list --json`.
type deadLetter struct {
	Position string            `json:"position"`
	Topic    string            `json:"topic"`
	Kind     string            `json:"kind"`
	Reason   string            `json:"reason"`
	Key      string            `json:"key"`
	Headers  map[string]string `json:"headers"`
	Value    json.RawMessage   `json:"value"`
	Base64   string            `json:"value_base64"`
}

func (c *cluster) listDeadLetters(t testing.TB) []deadLetter {
	t.Helper()
	var all []deadLetter
	for _, line := range lines(c.ingestNode.cli(t, "deadletter", "list", "--json", "--limit", "1000")) {
		if line == "" {
			continue
		}

		var l deadLetter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}

		all = append(all, l)
	}

	return all
}

// awaitDeadLetter waits for a dead letter with that value.
func (c *cluster) awaitDeadLetter(t testing.TB, value string) deadLetter {
	t.Helper()
	var found deadLetter
	eventually(t, "a dead letter", func() error {
		all := c.listDeadLetters(t)
		at := slices.IndexFunc(all, func(l deadLetter) bool { return string(l.Value) == value })
		if at < 0 {
			return fmt.Errorf("not among %d", len(all))
		}

		found = all[at]
		return nil
	})

	return found
}

func (c *cluster) testDeadLetters(t *testing.T) {
	const value = `{"Account-ID":"late","Type":"AGENT_LOGIN","n":1}`
	c.produce(t, kafka.Record{Key: []byte("late"), Value: []byte(value),
		Headers: []kafka.Header{{Key: "format", Value: []byte("svc.cc")}}})
	l := c.awaitDeadLetter(t, value)
	if l.Kind != "unknown_account" || l.Topic != "cc.raw" || l.Key != "late" || l.Headers["format"] != "svc.cc" ||
		l.Reason == "" {
		t.Errorf("dead letter %+v", l)
	}

	w := c.createAccountAndUser(t, "late", "demo")
	n := c.lastChannelNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})

	if printed := c.ingestNode.cli(t, "deadletter", "retry", l.Position); printed != "1 sent back" {
		t.Errorf("deadletter retry prints %q", printed)
	}

	got := s.awaitCount(t, 1)[0]
	if string(got.Data) != value || got.Type != "AGENT_LOGIN" || got.AccountID != "late" {
		t.Errorf("the retried event is %s", s.texts()[0])
	}

	// A record of an account that was just created must not become a dead letter.
	made := time.Now()
	c.ingestNode.cli(t, "account", "create", "fresh", "--id", "fresh", "--domain", "fresh.test", "--parent", "late")
	c.produce(t, kafka.Record{Key: []byte("fresh"), Value: []byte(record("fresh", 2))})

	if e := s.awaitCount(t, 2)[1]; e.AccountID != "fresh" {
		t.Errorf("got %+v, %v after its account was made", e, time.Since(made))
	}
}
