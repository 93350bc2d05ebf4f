package control

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

// node is the node that has the feed, and its platform.
type node struct {
	mu        sync.Mutex
	connected bool
	sent      []feed.Command
	answer    func(ctx context.Context) error // of the platform; nil: it has taken the command
}

func (n *node) Connected(string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.connected
}

func (n *node) Command(ctx context.Context, _ string, c feed.Command) error {
	n.mu.Lock()
	n.sent = append(n.sent, c)
	answer := n.answer
	n.mu.Unlock()
	if answer != nil {
		return answer(ctx)
	}
	return nil
}

func (n *node) List(context.Context) ([]feed.Status, error) {
	return []feed.Status{{Name: "switch", Node: "asked", State: feed.StateStandby},
		{Name: "switch", Node: "theirs", State: feed.StateConnected}}, nil
}

// newNodes returns a world whose service is on a node without the feed, the node that has it,
// and the end of that node.
func newNodes(t *testing.T) (w *world, theirs *node, kill func()) {
	w = newWorld(t)
	theirs = &node{connected: true}
	client := redis.NewClient(&redis.Options{Addr: testservice.Redis(t)})
	t.Cleanup(func() { _ = client.Close() })
	log := slog.New(slog.DiscardHandler)
	ours := &RedisNodes{Client: client, Prefix: testservice.Prefix(t), Node: "ours", Statuses: theirs, Log: log}
	far := &RedisNodes{Client: client, Prefix: ours.Prefix, Node: "theirs", Feeds: theirs, Statuses: theirs, Log: log}
	w.service.nodes = ours

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = far.Answer(ctx, w.service.SendOnce) // ends with ctx
	}()

	kill = func() { cancel(); <-ended }
	t.Cleanup(kill)
	for deadline := time.Now().Add(3 * time.Minute); ; {
		n, err := client.PubSubNumSub(t.Context(), far.channel("theirs")).Result()
		must(t, err)
		if n[far.channel("theirs")] == 1 {
			return w, theirs, kill
		}
		if time.Now().After(deadline) {
			t.Fatal("the node does not listen")
		}
	}
}

// The node with the feed is ended between accept and event: the action has an end, and a
// repeat sends nothing.
func TestTheNodeWithTheFeedIsEndedBetweenAcceptAndEvent(t *testing.T) {
	w, theirs, kill := newNodes(t)
	request := Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"}
	id, err := w.actAs(admin, request)
	must(t, err)
	kill()

	if s := w.statusAfter(id, 0); s.State != Accepted {
		t.Errorf("before its time: %+v", s)
	}
	if s := w.statusAfter(id, 11*time.Second); s.State != Unconfirmed {
		t.Errorf("after it: %+v", s)
	}

	again, err := w.actAs(admin, request)
	if err != nil || again != id || len(theirs.sent) != 1 {
		t.Errorf("a repeat: %q %v, sent %d times", again, err, len(theirs.sent))
	}

	if _, err := w.actAs(admin,
		Request{AgentID: "1003@x", Action: feed.ActionBreak}); fault.KindOf(err) != fault.KindUnavailable ||
		len(theirs.sent) != 1 {
		t.Errorf("without the node: %v, sent %d times", err, len(theirs.sent))
	}
}

// The answer of the node with the feed is that of the platform: its refusal, and its silence.
func TestAnotherNodesAnswerIsThePlatforms(t *testing.T) {
	w, theirs, _ := newNodes(t)
	theirs.answer = func(context.Context) error {
		return fault.New(fault.KindRefused, "Asterisk refused: Interface not found")
	}
	_, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	if fault.KindOf(err) != fault.KindRefused || err.Error() != "Asterisk refused: Interface not found" {
		t.Errorf("%v", err)
	}

	ctx, giveUp := context.WithCancel(t.Context())
	theirs.answer = func(context.Context) error {
		giveUp()
		<-t.Context().Done()
		return nil
	}

	_, err = w.service.Act(ctx,
		Request{Caller: admin, Account: identity.Account{ID: "demo"}, AgentID: "1003@x", Action: feed.ActionBreak})
	if fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("%v", err)
	}

	open, err := w.service.listActions(t.Context(), `state = 'sent'`)
	must(t, err)
	if len(open) != 1 || len(theirs.sent) != 2 {
		t.Fatalf("%d actions are followed, sent %d times", len(open), len(theirs.sent))
	}
	if s := w.statusAfter(open[0].ID, 11*time.Second); s.State != Unconfirmed {
		t.Errorf("%+v", s)
	}
}

// A feed that loses its connection between accept and event has the agent's state by the resync
// after it: that confirms.
func TestAFeedThatComesBackConfirms(t *testing.T) {
	w, theirs, _ := newNodes(t)
	id, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	must(t, err)
	theirs.mu.Lock()
	theirs.connected = false
	theirs.mu.Unlock()

	if s := w.statusAfter(id, 5*time.Second); s.State != Accepted {
		t.Errorf("while it is away: %+v", s)
	}

	w.agent("1001@x", event.Break, "support@x") // as the resync has it
	if s := w.statusAfter(id, 2*time.Second); s.State != Confirmed || s.EventID == "" {
		t.Errorf("when it is back: %+v", s)
	}
}
