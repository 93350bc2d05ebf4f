package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// questionAbout asks for the user root what became of an event of the log.
func (l *memoryLog) questionAbout(t *testing.T, id event.ID) Question {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, r := range l.partitions[id.Partition()] {
		if this, err := event.MessageID(r.Value); err == nil && this == id {
			text := func(header string) string { return string(r.Header(header)) }
			return Question{EventID: id, Offset: r.Offset, Root: "root", Message: identity.Message{
				AccountID: text(event.HeaderAccount), Type: event.Type(text(event.HeaderType)),
				Format: text(event.HeaderOriginalFormat),
				Name:   event.Name(text(event.HeaderName)), AgentID: text(event.HeaderAgent),
				QueueID: text(event.HeaderQueue), CallID: text(event.HeaderCall),
				OtherQueues: text(event.HeaderAgentQueues),
			}}
		}
	}

	t.Fatalf("the log has no %s", id)
	return Question{}
}

// eventOutcomes returns the outcomes of an event at the connections of the node, by user.
func (n *node) eventOutcomes(t *testing.T, log *memoryLog, id event.ID) map[string]Outcome {
	t.Helper()
	q := log.questionAbout(t, id)
	found := map[string]Outcome{}
	for _, c := range n.explanations.explainHere(&q).Connections {
		found[c.Username] = c.Outcome
	}
	return found
}

// user returns a token of a user of that name.
func (d *memoryDirectory) user(name, account string, f identity.Filter) string {
	token := d.filteredToken(account, f)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[token].Username, d.tokens[token].UserID = name, "id-"+name
	return token
}

// awaitOutcomes waits until an event has these outcomes at the connections of the node, by user.
func (n *node) awaitOutcomes(t *testing.T, log *memoryLog, id event.ID, want map[string]Outcome) {
	t.Helper()
	var got map[string]Outcome
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got = n.eventOutcomes(t, log, id)
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: outcomes %v, want %v", id, got, want)
		}
	}
}

func TestExplainTellsWhatDecidedAtEachConnection(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)

	facts := event.Facts{Name: event.NameQueueCallOffered, QueueID: "sales", AgentID: "7", CallID: "c"}
	put := func(source int64) event.ID {
		came := time.UnixMilli(1_795_000_000_000)
		return log.putFacts(0, "shop", event.QueueCall, facts, came, time.Unix(1, 0), source)[0]
	}

	early := put(0)
	all := n.dial(t, directory.user("all", "root", identity.Filter{}), "")
	n.dial(t, directory.user("service", "shop", identity.Filter{QueueIDs: []string{"service"}}), "")
	n.dial(t, directory.user("agents", "shop", identity.Filter{EventTypes: []string{"AGENT_LOGIN"}}), "")
	n.dial(t, directory.user("below", "kiosk", identity.Filter{}), "")
	n.dial(t, directory.user("stranger", "other", identity.Filter{}), "") // root may not know of it
	left := n.dial(t, directory.user("left", "shop", identity.Filter{Names: []string{"queue.*"}}), "")
	middle := put(1)
	all.numbers(1)
	left.numbers(1)
	_ = left.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""))
	left.closed()
	eventually(t, "the node forgets the connection",
		func() bool { return n.subscribers.countDisconnecting() == 0 && n.subscribers.countConnected() == 5 })
	late := put(2)
	all.numbers(1)
	resumed := n.dial(t, directory.user("resumed", "shop", identity.Filter{}), "since="+middle.String())
	resumed.numbers(1)

	filtered := map[string]Outcome{"service": OutcomeFiltered, "agents": OutcomeFiltered, "below": OutcomeNotVisible}
	for id, others := range map[event.ID]map[string]Outcome{
		early:  {"all": OutcomeConnectedLater, "left": OutcomeConnectedLater, "resumed": OutcomeResumedLater},
		middle: {"all": OutcomeDelivered, "left": OutcomeDelivered, "resumed": OutcomeResumedLater},
		late:   {"all": OutcomeDelivered, "left": OutcomeDisconnected, "resumed": OutcomeDelivered},
	} {
		want := maps.Clone(filtered)
		maps.Copy(want, others)
		n.awaitOutcomes(t, log, id, want)
	}

	q := log.questionAbout(t, late)
	a := n.explanations.explainHere(&q)
	for _, c := range a.Connections {
		switch {
		case c.Username == "service" &&
			(c.FilteredBy == nil || c.FilteredBy.Field != "queue_ids" ||
				!slices.Equal(c.FilteredBy.Admits, []string{"service"})):
			t.Errorf("filtered by %+v", c.FilteredBy)
		case c.Username == "left" && (c.Code != websocket.CloseGoingAway || c.EndedAt == 0 || c.LastEventID != middle):
			t.Errorf("left: %+v", c)
		case c.Username == "resumed" && c.ResumedFrom != middle.String():
			t.Errorf("resumed from %q", c.ResumedFrom)
		case c.Username == "all" &&
			(c.QueuedAt < c.ConnectedAt || c.LastEventID != late || c.Transport != transportWebSocket):
			t.Errorf("all: %+v", c)
		}
	}

	if a.Counts[OutcomeFiltered] != 2 || a.Counts[OutcomeDelivered] != 2 ||
		a.Connections[len(a.Connections)-1].Outcome != OutcomeNotVisible {
		t.Errorf("counts %v, last %+v", a.Counts, a.Connections[len(a.Connections)-1])
	}

	for _, narrow := range []Question{{User: "left"}, {User: "id-left"},
		{Client: a.Connections[slices.IndexFunc(a.Connections,
			func(c Connection) bool { return c.Username == "left" })].ID}} {
		q.User, q.Client = narrow.User, narrow.Client
		if some := n.explanations.explainHere(&q).Connections; len(some) != 1 || some[0].Username != "left" {
			t.Errorf("%+v: %+v", narrow, some)
		}
	}

	q.User, q.Client, q.Root = "", "", "kiosk"
	if some := n.explanations.explainHere(&q).Connections; len(some) != 1 || some[0].Username != "below" {
		t.Errorf("an administrator of kiosk sees %+v", some)
	}
}

// What a client that was too slow received, and what it did not, is what the
// explanation says of every event.
func TestExplainAgreesWithWhatASlowClientReceived(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{QueueBytes: 64 << 10}}, log, directory, newPresence(), false)
	stalled := n.dial(t, directory.user("stalled", "root", identity.Filter{}), "")
	brisk := n.dial(t, directory.user("brisk", "root", identity.Filter{}), "")
	var ids []event.ID

	for i := 0; n.subscribers.countConnected() == 2; i += 500 {
		if i > 60_000 {
			t.Fatal("the stalled client is not disconnected")
		}
		ids = append(ids, log.put(0, "root", event.QueueCall, sourceOffsets(i, i+500)...)...)
		brisk.numbers(500)
	}

	received := map[string]bool{}
	for {
		_ = stalled.ws.SetReadDeadline(time.Now().Add(patience))
		_, text, err := stalled.ws.ReadMessage()
		if e, ok := errors.AsType[*websocket.CloseError](err); ok && e.Code == DisconnectTooSlow.Code {
			break
		}
		if err != nil {
			t.Fatal(err)
		}

		var m struct{ ID string }
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}

		received[m.ID] = true
	}

	eventually(t, "the node forgets the connection", func() bool { return n.subscribers.countDisconnecting() == 0 })
	ids = append(ids, log.put(0, "root", event.QueueCall, 1_000_000)...)
	brisk.numbers(1)
	counts := map[Outcome]int{}

	for i, id := range ids {
		q := Question{EventID: id, Offset: int64(i), Root: "root", User: "stalled",
			Message: identity.Message{AccountID: "root", Type: event.QueueCall, Format: "svc.cc"}}
		all := n.explanations.explainHere(&q).Connections
		if len(all) != 1 || all[0].Code != DisconnectTooSlow.Code ||
			received[id.String()] != (all[0].Outcome == OutcomeDelivered) {
			t.Fatalf("event %d of %d, received: %v; %+v", i, len(ids), received[id.String()], all)
		}

		counts[all[0].Outcome]++
	}

	if counts[OutcomeDelivered] != len(received) || counts[OutcomeDropped] == 0 || counts[OutcomeDisconnected] == 0 {
		t.Errorf("%d received, outcomes %v", len(received), counts)
	}
}

func TestExplainTellsOfARefusedResume(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	ids := log.put(0, "shop", event.QueueCall, sourceOffsets(0, 10)...)
	log.trim(0, 5)
	token := directory.user("late", "shop", identity.Filter{})
	if _, response, err := n.tryDial(token, "since="+ids[2].String()); err == nil || response.StatusCode != 410 {
		t.Fatalf("resume: %v", err)
	}

	n.awaitOutcomes(t, log, ids[7], map[string]Outcome{"late": OutcomeRefused})
	n.awaitOutcomes(t, log, ids[1], map[string]Outcome{"late": OutcomeResumedLater})
	q := log.questionAbout(t, ids[7])
	if c := n.explanations.explainHere(&q).Connections[0]; c.Code != 410 || c.Reason == "" ||
		c.ResumedFrom != ids[2].String() ||
		c.Transport != transportWebSocket {
		t.Errorf("%+v", c)
	}
}

// While a replay is under way, its cursor says what it has given.
func TestExplainDuringAReplay(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1, QueueBytes: 8 << 10}}, log, directory, newPresence(),
		false)
	ids := log.put(0, "shop", event.QueueCall, sourceOffsets(0, 100_000)...)
	sub := n.dial(t, directory.user("slow", "shop", identity.Filter{}), "cursor=true&since=earliest")
	sub.numbers(100)
	last := ids[len(ids)-1]
	n.awaitOutcomes(t, log, ids[50], map[string]Outcome{"slow": OutcomeDelivered})
	n.awaitOutcomes(t, log, last, map[string]Outcome{"slow": OutcomeReplaying})
	sub.numbers(len(ids) - 100)
	n.awaitOutcomes(t, log, last, map[string]Outcome{"slow": OutcomeDelivered})
}

// A question reaches the node that has the connection, from any node and from a
// process without connections; a node that does not answer is named.
func TestQuestionsReachTheNodeThatKnows(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient, prefix string) {
		log, directory := newMemoryLog(1), newDirectory()

		shared := &RedisPresence{Client: client, Prefix: prefix}
		peers := RedisPeers{shared}
		start := func(name string) *node {
			return startWith(t, Config{NodeID: name},
				Deps{LogReader: log, Auth: directory, Directory: directory, Presence: shared, Peers: peers}, false)
		}

		a, b := start("a"), start("b")
		here := a.dial(t, directory.user("here", "root", identity.Filter{}), "")
		there := b.dial(t, directory.user("there", "shop", identity.Filter{QueueIDs: []string{"sales"}}), "")
		id := log.put(0, "shop", event.QueueCall, 1)[0]
		here.numbers(1)
		_ = there
		want := map[string]string{"here": "a delivered", "there": "b filtered"}

		for name, asker := range map[string]Explainer{"a": {a.Fanout, peers, slog.Default()},
			"b": {b.Fanout, peers, slog.Default()}, "none": {nil, peers, slog.Default()}} {
			var r Report
			got := map[string]string{}
			eventually(t, "both nodes answer "+name, func() bool {
				r = asker.Explain(t.Context(), log.questionAbout(t, id))
				clear(got)
				for _, c := range r.Connections {
					got[c.Username] = c.Node + " " + string(c.Outcome)
				}
				return maps.Equal(got, want) && r.Complete && len(r.Nodes) == 2
			})

			if r.Counts[OutcomeDelivered] != 1 || r.Counts[OutcomeFiltered] != 1 || len(r.Missing) != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}

		if _, err := shared.Publish(t.Context(), "silent", []Client{{ID: "x"}}, nil, true); err != nil {
			t.Fatal(err)
		}

		eventually(t, "a node without an answer is named", func() bool {
			r := Explainer{a.Fanout, peers, slog.Default()}.Explain(t.Context(), log.questionAbout(t, id))
			return !r.Complete && slices.Equal(r.Missing, []string{"silent"}) && len(r.Connections) == 2
		})
	})
}

// Without Redis a node reports its own connections.
func TestExplainWithoutRedis(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.user("here", "root", identity.Filter{}), "")
	id := log.put(0, "root", event.QueueCall, 1)[0]
	sub.numbers(1)
	n.awaitOutcomes(t, log, id, map[string]Outcome{"here": OutcomeDelivered})
	r := Explainer{n.Fanout, noPeers{}, slog.New(slog.DiscardHandler)}.Explain(t.Context(), log.questionAbout(t, id))
	if r.Complete || len(r.Connections) != 1 {
		t.Errorf("%+v", r)
	}
}

type noPeers struct{}

func (noPeers) Ask(context.Context, string, Question) ([]NodeAnswer, []string, error) {
	return nil, nil, errDown
}

func (noPeers) Answer(context.Context, string, func(*Question) NodeAnswer) {}

// The two ways to match agree: the index's, for many, and the one that explains.
func TestRefusalAgreesWithTheIndex(t *testing.T) {
	directory := newDirectory()
	tree := directory.Tree()
	interned := &interner{}

	for _, f := range []identity.Filter{{}, {AccountIDs: []string{"shop"}}, {AccountIDs: []string{"kiosk", "other"}},
		{EventTypes: []string{"AGENT_LOGIN"}},
		{QueueIDs: []string{"q"}}, {AgentIDs: []string{"a", "b"}}, {CallIDs: []string{"c"}},
		{Names: []string{"queue.*"}}, {Names: []string{"other"}, AgentIDs: []string{"a"}}} {
		for _, root := range []string{"root", "shop", "other"} {
			for _, m := range []identity.Message{
				{AccountID: "shop", Type: event.QueueCall, Format: "svc.cc", Name: event.NameQueueCallEntered,
					QueueID: "q", CallID: "c"},
				{AccountID: "kiosk", Type: event.AgentLogin, Format: "svc.cc", Name: event.NameAgentLogin,
					AgentID: "b"},
				{AccountID: "other", Type: event.Custom, Format: event.FormatOwn, Name: event.NameCallProgress},
				{AccountID: "shop", Type: event.AgentLogin, Format: "svc.cc", AgentID: "a"},
				{AccountID: "nowhere", Type: event.QueueCall, Format: "svc.cc"},
			} {
				message := event.Message{ID: event.FirstID(time.Now(), 0), Type: m.Type, AccountID: m.AccountID,
					Data: []byte("{}")}
				b, _ := newBatch([]kafka.Record{{Value: message.Append(nil), Headers: []kafka.Header{
					{Key: event.HeaderType, Value: []byte(m.Type)},
					{Key: event.HeaderAccount, Value: []byte(m.AccountID)},
					{Key: event.HeaderOriginalFormat, Value: []byte(m.Format)},
					{Key: event.HeaderName, Value: []byte(m.Name)},
					{Key: event.HeaderAgent, Value: []byte(m.AgentID)},
					{Key: event.HeaderQueue, Value: []byte(m.QueueID)},
					{Key: event.HeaderCall, Value: []byte(m.CallID)},
				}}}, interned, false)
				p := &identity.Principal{AccountID: root, Filter: f}
				flt := newFilter(p, directory)
				matched := flt != nil && flt.matches(&b.frames[0], tree)
				if mismatch := p.Mismatch(root, &m, tree); (mismatch == nil) != matched {
					t.Errorf("%+v of %s, %+v: matched %v, mismatch %+v", f, root, m, matched, mismatch)
				}
			}
		}
	}
}
