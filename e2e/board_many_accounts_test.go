package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// TestBoardOverManyAccounts opens a board for several accounts in several partitions, which loses
// its connection repeatedly under traffic, and whose token expires meanwhile.
func TestBoardOverManyAccounts(t *testing.T) {
	t.Parallel()
	broker := freeport.Address(t)
	n := newNode(t, "embedded", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN": broker,
		"TRUNKLINE_AUTH_EVENTS_TTL": "45s",
	})
	c := newCluster(t, []string{broker}, "", n)
	accounts := []string{"demo"}

	for i := range 5 {
		name := fmt.Sprintf("team%d", i)
		accounts = append(accounts,
			n.cli(t, "account", "create", name, "--domain", name+".demo.local", "--parent", "demo", "--id", name))
	}

	sent := 0
	send := func() { // a few events for each account
		for _, account := range accounts {
			c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch(account, sent, sent+2), 2)
			sent += 2
		}
	}

	b := n.newBoard(t)
	b.view(t, "#events")
	b.recordShownIDs(t)
	b.login(t, "alice")
	began := time.Now()

	for range 5 {
		send()
		b.cable.setState(resetting)
		send()
		b.cable.setState(passing)
		b.awaitLive(t)
		send()
	}

	b.awaitTrue(t, "the token to expire", "document.getElementById('login')?.open")
	t.Logf("the token expired after %v", time.Since(began))
	send()
	b.awaitTrue(t, "the password prompt", jsFieldHasFocus("password"))
	b.typeText(t, password)
	b.press(t, "Enter")
	b.awaitLive(t)
	send()

	want := []string{}
	token := n.login(t, wsPaths, user("alice").types(boardEventTypes...))

	reference := n.subscribe(t, subscription{paths: wsPaths, token: token, since: "earliest"})
	for _, e := range reference.awaitCount(t, sent) {
		want = append(want, e.ID)
	}

	slices.Sort(want)
	b.awaitTrue(t, "all events",
		fmt.Sprintf("document.getElementById('feed-count').textContent.startsWith('%d ')", sent))

	if got := b.shownIDs(t); !slices.Equal(got, want) {
		t.Errorf("the board showed %d events of %d:\nnot shown %v\ntwice %v", len(got), len(want), subtract(want, got),
			subtract(got, want))
	}

	b.checkPage(t)
}
