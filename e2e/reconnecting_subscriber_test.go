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

// subscriber reads the channel and stores the received events. With reconnects, it connects
// after every disconnect to the next of its nodes and resumes.
type subscriber struct {
	nodes      []*node
	ask        subscription
	reconnects bool

	mu             sync.Mutex
	got            []event
	raw            [][]byte // of got
	resumePosition string
	cursors        bool          // resumePosition is a cursor, which is more precise than an id
	breaks         int           // connections after the first
	ended          error         // final error: there will be no further connection; nil: active
	changed        chan struct{} // closed at every change, and replaced

	cancel context.CancelFunc
	done   chan struct{}
}

// subscribe opens a channel, which must be accepted. It ends with the test.
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

// keepSubscribed is subscribe for a subscriber that after a disconnect resumes at the next of the nodes.
func keepSubscribed(t testing.TB, ask subscription, nodes ...*node) *subscriber {
	t.Helper()
	s := newSubscriber(t, true, ask, nodes...)
	first, err := ask.connect(context.Background(), nodes[0])
	if err != nil {
		t.Fatalf("subscribing on %s: %v", nodes[0].name, err)
	}
	s.begin(t, first)
	return s
}

func newSubscriber(t testing.TB, reconnects bool, ask subscription, nodes ...*node) *subscriber {
	t.Helper()
	return &subscriber{
		nodes: nodes, ask: ask, reconnects: reconnects, resumePosition: ask.since,
		changed: make(chan struct{}), done: make(chan struct{}),
	}
}

func (s *subscriber) begin(t testing.TB, first connection) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.run(ctx, first)
	t.Cleanup(s.close)
}

// close closes the connection and returns when the subscriber has ended.
func (s *subscriber) close() {
	s.cancel()
	<-s.done
}

func (s *subscriber) run(ctx context.Context, c connection) {
	defer close(s.done)

	for turn := 1; ; {
		err := s.read(ctx, c)
		for c = nil; c == nil && s.reconnects && ctx.Err() == nil; turn++ {
			c, err = s.reconnect(ctx, s.nodes[turn%len(s.nodes)])
			if turned := (*refused)(nil); errors.As(err, &turned) && turned.status != http.StatusServiceUnavailable {
				break
			}
		}

		if c == nil {
			s.update(func() { s.ended = err })
			return
		}
	}
}

// reconnect reconnects after a pause and resumes.
func (s *subscriber) reconnect(ctx context.Context, n *node) (connection, error) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	ask := s.ask
	s.update(func() { ask.since = s.resumePosition })
	c, err := ask.connect(ctx, n)
	if err == nil {
		s.update(func() { s.breaks++ })
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

		s.update(func() {
			if f.text != nil {
				s.got, s.raw = append(s.got, e), append(s.raw, f.text)
			}

			s.cursors = s.cursors || f.text == nil
			switch {
			case f.resumePosition != "":
				s.resumePosition = f.resumePosition
			case !s.cursors: // until the first cursor, use the id
				s.resumePosition = e.ID
			}
		})
	}
}

func (s *subscriber) update(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

// endError returns the reason why the subscriber has ended, nil while it is active.
func (s *subscriber) endError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// events returns the received events. The slice must not be changed: later events are appended to
// the same array.
func (s *subscriber) events() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.got)
}

// texts returns the events as received.
func (s *subscriber) texts() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.raw)
}

func (s *subscriber) position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumePosition
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
			t.Fatalf("waiting for %s: %d events received", what, len(got))
		}
	}
}

func (s *subscriber) awaitCount(t testing.TB, n int) []event {
	t.Helper()
	return s.await(t, fmt.Sprintf("%d events", n), func(got []event) bool { return len(got) >= n })
}

// awaitEnd waits until the server closes the connection and returns close code and reason.
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

// mustRefuse opens a channel, which must be refused.
func (n *node) mustRefuse(t testing.TB, ask subscription, status int) answer {
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
