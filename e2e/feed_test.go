package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/internal/testservice"
)

// feedSettings returns the settings of one feed.
func feedSettings(t testing.TB, feed map[string]any) string {
	t.Helper()
	text, err := json.Marshal([]any{feed})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// feedSetting returns the value of the setting feeds with the switch alone.
func (s *scriptedSwitch) feedSetting(t testing.TB, password string, redundancy int) string {
	return feedSettings(t, s.feedEntry(password, redundancy))
}

// feedEntry returns the entry of the setting feeds for the switch.
func (s *scriptedSwitch) feedEntry(password string, redundancy int) map[string]any {
	return map[string]any{"name": "pbx", "kind": "freeswitch", "address": s.address, "password": password,
		"account": "demo", "redundancy": redundancy}
}

// feedStatus is a row of "feed list --json".
type feedStatus struct {
	Name, Kind, Node, State, Error string
	ConnectedAt                    int64 `json:"connected_at"`
	LastEventAt                    int64 `json:"last_event_at"`
	Events                         int
}

// awaitFeeds waits until a number of nodes are connected to their platform.
func (n *node) awaitFeeds(t testing.TB, connected int) []feedStatus {
	t.Helper()
	var all []feedStatus
	eventually(t, "the feed to be connected", func() error {
		text := n.cli(t, "feed", "list", "--json")
		all = nil
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return err
		}

		count := 0
		for _, one := range all {
			if one.State == "connected" {
				count++
			}
		}

		// The row of a killed node remains for some seconds.
		if count < connected || n.checkMetric(`trunkline_feed_connected{feed="pbx",kind="freeswitch"}`, "1") != nil {
			return fmt.Errorf("%s", text)
		}

		return nil
	})

	return all
}

// platformEvents returns the data of the events, without corrections from a resync.
func platformEvents(s *subscriber) (data []string) {
	for _, e := range s.events() {
		if !bytes.HasPrefix(e.Data, []byte(`{"resync":`)) {
			data = append(data, string(e.Data))
		}
	}
	return data
}

// awaitDelivered waits until the subscriber has received every event that the switch sent, and checks
// that each came once and in order.
func (s *scriptedSwitch) awaitDelivered(t testing.TB, sub *subscriber) {
	t.Helper()
	want := s.sentEvents()
	sub.await(t, "the events of the switch", func([]event) bool { return len(platformEvents(sub)) >= len(want) })
	s.checkDelivered(t, sub)
}

// checkDelivered checks that the subscriber has the events that the switch sent, each once and in order.
func (s *scriptedSwitch) checkDelivered(t testing.TB, sub *subscriber) {
	t.Helper()
	want, got := s.sentEvents(), platformEvents(sub)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !hasRecord([]byte(got[i]), want[i]) {
			sequence := func(of []string) string {
				var b strings.Builder
				for _, text := range of[min(len(of), max(0, i-3)):min(len(of), i+4)] {
					b.WriteString(sequences.FindString(text) + " ")
				}
				return b.String()
			}

			t.Fatalf("event %d of %d: got %d, around it %s; want %s", i, len(want), len(got), sequence(got),
				sequence(want))
		}
	}
}

// awaitAgent waits until the snapshot has the agent in a state, or not at all for "", and no
// call.
func (n *node) awaitAgent(t testing.TB, token, state string) {
	t.Helper()
	eventually(t, "the snapshot to have the agent "+state, func() error {
		a := n.mustCall(t, http.MethodGet, "/api/v2/cc_events_channel/snapshot", bearer(token), "")
		var snapshot struct {
			Agents []struct {
				ID    string `json:"agent_id"`
				State string
			}
			Calls []json.RawMessage
		}
		if err := json.Unmarshal(a.body, &snapshot); a.status != http.StatusOK || err != nil {
			return fmt.Errorf("%s %v", a, err)
		}

		got := ""
		for _, agent := range snapshot.Agents {
			got += agent.State
		}

		if got != state || len(snapshot.Calls) > 0 {
			return fmt.Errorf("%s", a)
		}

		return nil
	})
}

// A feed's events arrive once and in order, with facts, although the program and the switch are
// killed; the snapshot has the changes of the meantime.
func TestAFreeSWITCHFeed(t *testing.T) {
	t.Parallel()
	pbx := newScriptedSwitch(t)
	n := newNode(t, "embedded",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password,
			"TRUNKLINE_FEEDS": pbx.feedSetting(t, switchPassword, 1)})
	n.start(t)
	token := n.login(t, apiPaths, user("admin"))
	sub := keepSubscribed(t, subscription{paths: apiPaths, token: token}, n)
	first := n.awaitFeeds(t, 1)

	pbx.send(pbx.newSessionEvents(t)...)
	pbx.awaitDelivered(t, sub)
	n.awaitAgent(t, token, "") // the agent has logged out
	var names []string

	for _, text := range sub.texts() {
		var m struct {
			Metadata struct{ Facts struct{ Name string } }
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}

		names = append(names, m.Metadata.Facts.Name)
	}

	for _, want := range []string{"agent.state", "queue.call_entered", "queue.call_offered", "queue.call_answered",
		"queue.call_ended", "agent.break_start", "agent.logout", "call.created", "call.ended"} {
		if !slices.Contains(names, want) {
			t.Errorf("no event has the facts %s: %q", want, names)
		}
	}

	// The table and its columns.
	if s := first[0]; s.Name != "pbx" || s.Kind != "freeswitch" || s.Node == "" || s.ConnectedAt == 0 {
		t.Errorf("feed list --json has %+v", s)
	}

	eventually(t, "all fields of feed list --json", func() error {
		var fields []map[string]any
		text := n.cli(t, "feed", "list", "--json")
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			return err
		}

		for _, field := range []string{"name", "kind", "node", "state", "connected_at", "last_event_at", "events",
			"spool_bytes", "oldest_unsent_seconds", "holes", "resync_differences", "dropped"} {
			if _, ok := fields[0][field]; !ok {
				return fmt.Errorf("%s lacks %s", text, field)
			}
		}

		return nil
	})

	if table := n.cli(t, "feed", "list"); !strings.Contains(table, "STATE") || !strings.Contains(table, "connected") {
		t.Errorf("feed list prints\n%s", table)
	}

	check := n.cli(t, "feed", "check", "pbx", "--wait", "3s")
	for _, want := range []string{"pbx: connected and logged in", "callcenter::info",
		"state: 0 agents, 0 calls, 0 devices", "no event within 3s"} {
		if !strings.Contains(check, want) {
			t.Errorf("feed check prints\n%s\nwithout %q", check, want)
		}
	}

	wrong := run(t, withSettings(n.settings, "TRUNKLINE_FEEDS", pbx.feedSetting(t, "wrong", 1)), "", "feed", "check",
		"pbx")
	if wrong.code == 0 || !strings.Contains(wrong.stderr, "event_socket.conf.xml") ||
		strings.Contains(wrong.stderr, switchPassword) {
		t.Errorf("feed check with a wrong password ends with %d: %s", wrong.code, wrong.stderr)
	}

	// kill -9 during a call, which ends before the feed reads again.
	session := pbx.newSessionEvents(t)
	half := len(session) / 2
	pbx.send(session[:half]...)
	read := len(pbx.sentEvents())
	eventually(t, "the events to be read", func() error {
		return n.checkMetric(`trunkline_feed_events_total{feed="pbx",kind="freeswitch"}`, fmt.Sprint(read))
	})
	n.kill(t)
	pbx.setAgent("On Break")
	n.start(t)
	n.awaitFeeds(t, 1)
	n.awaitAgent(t, token, "break")
	pbx.send(pbx.newSessionEvents(t)...)
	pbx.awaitDelivered(t, sub)

	// The switch is restarted during a call.
	session = pbx.newSessionEvents(t)
	pbx.send(session[:half]...)
	pbx.awaitDelivered(t, sub)
	pbx.stop()
	pbx.setAgent("Available")
	pbx.start(t)
	n.awaitFeeds(t, 1)
	n.awaitAgent(t, token, "available")
	pbx.send(pbx.newSessionEvents(t)...)
	pbx.awaitDelivered(t, sub)
}

// Two nodes read one switch: each event arrives once, whichever node is killed.
func TestTwoNodesReadOneSwitch(t *testing.T) {
	t.Parallel()
	pbx := newScriptedSwitch(t)
	settings, _ := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_KAFKA_PARTITIONS", "2", "TRUNKLINE_FEEDS",
		pbx.feedSetting(t, switchPassword, 2))

	nodes := []*node{newNode(t, "node 1", settings), newNode(t, "node 2", settings)}
	for _, n := range nodes {
		n.startProcess(t)
	}

	for _, n := range nodes {
		n.awaitReady(t)
		n.awaitFeeds(t, 2)
	}

	sub := keepSubscribed(t, subscription{paths: apiPaths, token: nodes[0].login(t, apiPaths, user("admin"))}, nodes[1],
		nodes[0])
	for _, n := range nodes {
		session := pbx.newSessionEvents(t)
		half := len(session) / 2
		pbx.send(session[:half]...)
		n.kill(t)
		pbx.send(session[half:]...)
		pbx.awaitDelivered(t, sub)
		n.start(t)
		n.awaitFeeds(t, 2)
	}

	pbx.send(pbx.newSessionEvents(t)...)
	pbx.awaitDelivered(t, sub)
}

// Events published by Kazoo arrive.
func TestAKazooFeed(t *testing.T) {
	t.Parallel()
	address := testservice.RabbitMQ(t)
	name := testservice.Prefix(t) + "feed"
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}

	for _, exchange := range []string{"callevt", "cdr", "conference", "kapps", "callmgr", "registrar"} {
		if err := channel.ExchangeDeclare(exchange, "topic", false, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if _, err := channel.QueueDelete("trunkline."+name, false, false, false); err != nil {
			t.Error(err)
		}
	}()

	n := newNode(t, "embedded", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password,
		"TRUNKLINE_FEEDS": feedSettings(t,
			map[string]any{"name": name, "kind": "kazoo", "url": address, "account": "demo"})})
	n.start(t)
	sub := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("admin"))})
	eventually(t, "the feed to be connected", func() error {
		return n.checkMetric(`trunkline_feed_connected{feed="`+name+`",kind="kazoo"}`, "1")
	})

	const calls = 20
	for i := range calls {
		body := fmt.Sprintf(
			`{"Event-Category":"acdc_call_stat","Event-Name":"handled","App-Name":"acdc","App-Version":"4.3","Account-ID":"demo",`+
				`"Queue-ID":"q1","Call-ID":"%s%d","Agent-ID":"a1","Handled-Timestamp":%d}`, name, i, 63962388905+i)
		if err := channel.PublishWithContext(t.Context(), "kapps", "acdc_stats.call.demo.q1", false, false,
			amqp.Publishing{ContentType: "application/json", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}

	own := func() (got []string) { // the RabbitMQ is shared
		for _, text := range sub.texts() {
			if bytes.Contains(text, []byte(`"call_id":"`+name)) &&
				bytes.Contains(text, []byte(`"name":"queue.call_answered"`)) {
				var e event
				if err := json.Unmarshal(text, &e); err != nil {
					t.Fatal(err)
				}

				var data struct {
					Call string `json:"Call-ID"`
				}
				if err := json.Unmarshal(e.Data, &data); err != nil {
					t.Fatal(err)
				}

				got = append(got, data.Call)
			}
		}

		return got
	}

	sub.await(t, "the calls", func([]event) bool { return len(own()) >= calls })
	for i, call := range own() {
		if want := fmt.Sprint(name, i); call != want {
			t.Errorf("call %d is %s, want %s", i, call, want)
		}
	}
}
