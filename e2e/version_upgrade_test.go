package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// Nodes of the version before are replaced by this version one after another, and back, on the same
// data, while records are posted, a feed is read, a webhook is called and figures are counted.
// Nothing is lost, nothing comes twice.

func TestUpgradeAndBackOnSQLite(t *testing.T) {
	t.Parallel()
	before, pbx := versionBefore(t), newScriptedSwitch(t)
	broker := freeport.Address(t)
	upgradeAndBack(t, before, pbx, []string{broker}, "", newNode(t, "node",
		upgradeSettings(t, pbx, 1, "TRUNKLINE_DEMO_PASSWORD", password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN", broker)))
}

func TestUpgradeAndBackOnPostgreSQL(t *testing.T) {
	t.Parallel()
	before, pbx := versionBefore(t), newScriptedSwitch(t)
	settings, prefix := backendSettings(t)
	maps.Copy(settings, upgradeSettings(t, pbx, 2))
	upgradeAndBack(t, before, pbx, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix,
		newNode(t, "node 1", settings), newNode(t, "node 2", settings))
}

func upgradeSettings(t *testing.T, pbx *scriptedSwitch, redundancy int, more ...string) map[string]string {
	t.Helper()
	return withSettings(map[string]string{"TRUNKLINE_FEEDS": pbx.feedSetting(t, switchPassword, redundancy),
		"TRUNKLINE_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"}, more...)
}

// versionBefore returns the program of the version before.
func versionBefore(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TRUNKLINE_TEST_BEFORE")
	if path == "" {
		t.Skip("NOT TESTED: make upgrade-test builds the version before")
	}
	return path
}

// upgradeAndBack replaces the nodes, which have not been started.
func upgradeAndBack(t *testing.T, before string, pbx *scriptedSwitch, brokers []string, prefix string,
	nodes ...*node) {
	for _, n := range nodes {
		n.programPath = before
	}

	c := newCluster(t, brokers, prefix, nodes...)
	const queue = "counted" // the account of the figures
	for _, id := range []string{"load-a", "load-b", queue} {
		c.createAccountAndUser(t, id, "demo")
	}

	countedKey := c.ingestNode.cli(t, "apikey", "create", "--account", queue, "--scope", "ingest")
	c.awaitKey(t, countedKey)
	received := &hookReceiver{}
	receiver := httptest.NewServer(received)
	t.Cleanup(receiver.Close)
	c.ingestNode.createHook(t, receiver.URL)

	subscribe := func(sse bool, account string) *subscriber {
		token := nodes[0].login(t, apiPaths, user("alice").accounts(account))
		return keepSubscribed(t,
			subscription{paths: apiPaths, token: token, sse: sse, sinceInHeader: sse, since: "earliest"}, nodes...)
	}

	socket, stream, feed := subscribe(false, "load-a"), subscribe(true, "load-b"), subscribe(false, "demo")
	var posters []*poster
	for i, account := range []string{"load-a", "load-b", "load-a", "load-b"} {
		posters = append(posters, &poster{name: fmt.Sprint("poster ", i), account: account, key: c.key,
			node: nodes[i%len(nodes)], every: 50 * time.Millisecond})
	}

	load := startPosters(t, posters...)

	midnight, calls := time.Now().UTC().Truncate(24*time.Hour), 0
	work := func(n *node) {
		n.awaitFeeds(t, len(nodes))
		pbx.send(pbx.newSessionEvents(t)...)
		pbx.awaitDelivered(t, feed)

		for range 10 {
			call := queueCallEvents("support", fmt.Sprint("call-", calls), "1001", midnight, 5*time.Second, time.Minute)
			n.postAccepted(t, countedKey, "generic", typeJSON, "["+call+"]", 4)
			calls++
		}

		load.awaitMore(t, 300)
	}

	work(nodes[0])
	for _, version := range []string{"", before} {
		for _, n := range nodes {
			n.stop(t)
			if len(nodes) > 1 { // the other node reads the switch
				pbx.send(pbx.newSessionEvents(t)...)
			}

			n.programPath = version
			n.start(t)
			work(n)
		}
	}

	load.stop()

	checkOrder(t, "the socket", load.awaitAll(t, socket, "load-a"))
	checkOrder(t, "the stream", load.awaitAll(t, stream, "load-b"))
	pbx.checkDelivered(t, feed)

	for _, n := range nodes {
		n.awaitCalls(t, queue, calls)
	}

	all := append(append(socket.events(), stream.events()...), feed.events()...)
	eventually(t, "every event at the webhook", func() error {
		got := received.ids(t)
		for _, e := range all {
			if got[e.ID] == 0 {
				return fmt.Errorf("%s is missing, %d events received", e.ID, len(got))
			}
		}

		return nil
	})

	again := 0
	for id, times := range received.ids(t) {
		if times > 1 {
			again++
			t.Logf("the webhook got %s %d times", id, times)
		}
	}

	if again > 0 {
		t.Errorf("%d events came to the webhook again, although every node stopped properly", again)
	}

	t.Logf("%d events in %d and %d connections, %d calls counted", len(all), socket.breaks+1, stream.breaks+1, calls)
}

// awaitCalls waits until today's figures of the account have a number of calls, no fewer and no more.
func (n *node) awaitCalls(t *testing.T, account string, calls int) {
	t.Helper()
	token := n.login(t, apiPaths, user("alice").accounts(account))
	eventually(t, "the figures on "+n.name, func() error {
		a := n.mustCall(t, http.MethodGet, "/api/v2/cc_events_channel/snapshot", bearer(token), "")
		var snapshot struct {
			Queues []struct{ Offered, Answered int }
		}
		if err := json.Unmarshal(a.body, &snapshot); a.status != http.StatusOK || err != nil {
			return fmt.Errorf("%s %v", a, err)
		}
		if len(snapshot.Queues) != 1 || snapshot.Queues[0].Offered != calls || snapshot.Queues[0].Answered != calls {
			return fmt.Errorf("of %d calls: %s", calls, a)
		}

		return nil
	})
}
