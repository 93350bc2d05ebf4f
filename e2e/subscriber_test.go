package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// subscriber reads the channel and keeps what came. A follower comes back
// after every break, to the next of its nodes, where it was.
type subscriber struct {
	nodes   []*node
	ask     subscription
	follows bool

	mu      sync.Mutex
	got     []event
	raw     [][]byte // of got
	place   string   // what to resume from
	cursors bool     // place is a cursor: an id would be less
	breaks  int
	ended   error         // why there is no connection, and none will come; nil: not so
	changed chan struct{} // closed at every change, and made anew

	cancel context.CancelFunc
	done   chan struct{}
}

// subscribe opens a channel that must not be refused. It ends with the test.
func (n *node) subscribe(t testing.TB, ask subscription) *subscriber {
	t.Helper()
	s := newSubscriber(t, false, ask, n)
	first, err := ask.connect(context.Background(), n)
	if err != nil {
		t.Fatalf("subscribing on %s: %v", n.name, err)
	}
	s.begin(t, first)
	return s
}

// follow is subscribe for a follower of nodes.
func follow(t testing.TB, ask subscription, nodes ...*node) *subscriber {
	t.Helper()
	s := newSubscriber(t, true, ask, nodes...)
	first, err := ask.connect(context.Background(), nodes[0])
	if err != nil {
		t.Fatalf("subscribing on %s: %v", nodes[0].name, err)
	}
	s.begin(t, first)
	return s
}

func newSubscriber(t testing.TB, follows bool, ask subscription, nodes ...*node) *subscriber {
	t.Helper()
	return &subscriber{
		nodes: nodes, ask: ask, follows: follows, place: ask.since,
		changed: make(chan struct{}), done: make(chan struct{}),
	}
}

func (s *subscriber) begin(t testing.TB, first connection) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.run(ctx, first)
	t.Cleanup(s.close)
}

// close ends it and returns when it has ended.
func (s *subscriber) close() {
	s.cancel()
	<-s.done
}

func (s *subscriber) run(ctx context.Context, c connection) {
	defer close(s.done)
	for turn := 1; ; {
		err := s.read(ctx, c)
		for c = nil; c == nil && s.follows && ctx.Err() == nil; turn++ {
			c, err = s.again(ctx, s.nodes[turn%len(s.nodes)])
			if turned := (*refused)(nil); errors.As(err, &turned) && turned.status != http.StatusServiceUnavailable {
				break
			}
		}
		if c == nil {
			s.change(func() { s.ended = err })
			return
		}
	}
}

// again connects where the subscriber is, after a moment's wait.
func (s *subscriber) again(ctx context.Context, n *node) (connection, error) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ask := s.ask
	s.change(func() { ask.since = s.place })
	c, err := ask.connect(ctx, n)
	if err == nil {
		s.change(func() { s.breaks++ })
	}
	return c, err
}

func (s *subscriber) read(ctx context.Context, c connection) error {
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	defer c.close()
	for {
		f, err := c.next()
		if err != nil {
			return err
		}
		var e event
		if f.text != nil {
			if err := json.Unmarshal(f.text, &e); err != nil {
				return fmt.Errorf("a message is no event: %w", err)
			}
		}
		s.change(func() {
			if f.text != nil {
				s.got, s.raw = append(s.got, e), append(s.raw, f.text)
			}
			s.cursors = s.cursors || f.text == nil
			switch {
			case f.place != "":
				s.place = f.place
			case !s.cursors: // so far an id has to do
				s.place = e.ID
			}
		})
	}
}

func (s *subscriber) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

// over is why the subscriber gave up; nil while it goes on.
func (s *subscriber) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// events are those so far. They do not change, and must not be changed: others are
// appended behind them.
func (s *subscriber) events() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.got)
}

// texts are the events as they came.
func (s *subscriber) texts() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.raw)
}

func (s *subscriber) at() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

// await waits until enough returns true for the received events.
func (s *subscriber) await(t testing.TB, what string, enough func([]event) bool) []event {
	t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		got, ended, changed := slices.Clip(s.got), s.ended, s.changed
		s.mu.Unlock()
		if enough(got) {
			return got
		}
		if ended != nil {
			t.Fatalf("waiting for %s: the connection ended with %v after %d events", what, ended, len(got))
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("waiting for %s: %d events came", what, len(got))
		}
	}
}

func (s *subscriber) awaitCount(t testing.TB, n int) []event {
	t.Helper()
	return s.await(t, fmt.Sprintf("%d events", n), func(got []event) bool { return len(got) >= n })
}

// awaitEnd waits until the server ends the connection, and gives close code
// and reason.
func (s *subscriber) awaitEnd(t testing.TB) (code int, reason string) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("the connection stays open")
	}
	var closed *websocket.CloseError
	if !errors.As(s.ended, &closed) {
		t.Fatalf("the connection ended with %v, not with a close frame", s.ended)
	}
	return closed.Code, closed.Text
}

// refuses opens a channel that must be refused.
func (n *node) refuses(t testing.TB, ask subscription, status int) answer {
	t.Helper()
	c, err := ask.connect(t.Context(), n)
	if err == nil {
		c.close()
	}
	var turned *refused
	if !errors.As(err, &turned) || turned.status != status {
		t.Errorf("%v: %v, want %d", ask, err, status)
		return answer{}
	}
	return turned.answer
}

func ids(events []event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}
