package ami

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/telephony/eventconn/conntest"
)

// A peer that answers a list with responses for ever, or with other actions' ids, costs the
// action and no more.
func TestAnswersWithoutEndEndTheAction(t *testing.T) {
	for name, test := range map[string]struct {
		play func(p *peer, a *Message)
		want error
	}{
		"responses": {func(p *peer, a *Message) { p.answer(a, "Response: Success") }, ErrListTooLarge},
		"events":    {func(p *peer, a *Message) { p.answer(a, "Event: QueueParams", "Queue: q") }, ErrListTooLarge},
		"other ids": {func(p *peer, a *Message) { p.Writef("Response: Success\r\nActionID: other\r\n\r\n") },
			ErrTimeout},
		"without id": {func(p *peer, a *Message) { p.Writef("Response: Success\r\n\r\n") }, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			c := dialClient(t,
				Config{MaxMessage: 4 << 10, MaxList: 64 << 10, ActionTimeout: 200 * time.Millisecond,
					Address: afterLogin(t, func(p *peer) {
						a, err := p.readAction()
						if err != nil {
							return
						}

						for {
							select {
							case <-stop:
								return
							default:
								test.play(p, a)
							}
						}
					})})

			_, err := c.List(t.Context(), "QueueStatus")
			close(stop)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v", err)
			}

			c.mu.Lock()
			defer c.mu.Unlock()

			if len(c.waiters) != 0 {
				t.Errorf("%d waiters are left", len(c.waiters))
			}
		})
	}
}

func TestResponsesOutOfOrderGoToTheirActions(t *testing.T) {
	const all = 500
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		var asked []*Message
		for range all {
			a, err := p.readAction()
			if err != nil {
				return
			}
			asked = append(asked, a)
		}

		for i := len(asked) - 1; i >= 0; i-- {
			if i%3 == 0 {
				p.Writef("Event: X\r\n\r\n")
			}
			p.answer(asked[i], "Response: Success", "Value: "+asked[i].Get("Variable"))
		}

		p.WaitClosed()
	})})

	var waiting sync.WaitGroup
	for i := range all {
		waiting.Go(func() {
			want := fmt.Sprint(i)
			response, err := c.Do(t.Context(), Action{Name: "Getvar", Fields: []Field{{"Variable", want}}})
			if err != nil || response.Get("Value") != want {
				t.Errorf("%s answered %v, %v", want, response, err)
			}
		})
	}

	waiting.Wait()
	if n := len(c.Take()); n != (all+2)/3 {
		t.Errorf("%d events", n)
	}
}

func TestLateResponseAnswersNoOtherAction(t *testing.T) {
	release := make(chan struct{})
	c := dialClient(t, Config{ActionTimeout: 50 * time.Millisecond, Address: afterLogin(t, func(p *peer) {
		first, _ := p.readAction()
		list, _ := p.readAction()
		<-release
		p.answer(first, "Response: Success", "Message: late")
		p.answer(list, "Response: Success", "EventList: start")
		p.answer(list, "Event: QueueMember")
		p.answer(list, "Event: QueueStatusComplete", "EventList: Complete")
		p.Writef("Event: Last\r\n\r\n")
		p.WaitClosed()
	})})
	if _, err := c.Do(t.Context(), Action{Name: "Slow"}); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := c.List(ctx, "QueueStatus"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}

	close(release)
	if events := conntest.TakeEvents(t, c.Conn, 1); len(events) != 1 || events[0].Name() != "Last" {
		t.Fatalf("%d events", len(events))
	}
	if c.Err() != nil || len(c.waiters) != 0 {
		t.Fatalf("%v, %d waiters", c.Err(), len(c.waiters))
	}
}

func TestListCollectsItsEventsAmongOthers(t *testing.T) {
	data := capture(t, "answer-QueueStatus")
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		a, err := p.readAction()
		if err != nil {
			return
		}

		text := strings.ReplaceAll(string(data), "ActionID: a2\r\n", "ActionID: "+a.Get("ActionID")+"\r\n")
		p.Writef("%s", strings.ReplaceAll(text, "\r\n\r\nEvent: QueueMember\r\n",
			"\r\n\r\nEvent: Hangup\r\n\r\nEvent: QueueMember\r\n"))
		a, _ = p.readAction()
		p.answer(a, "Response: Error", "Message: No such queue")
		a, _ = p.readAction()
		p.answer(a, "Response: Success", "EventList: start")
		p.answer(a, "Event: QueueMember")
		p.answer(a, "Event: QueueStatusComplete", "EventList: Cancelled")
		a, _ = p.readAction()
		p.answer(a, "Response: Success", "EventList: start")

		for range 100 {
			p.answer(a, "Event: QueueMember", "Name: "+strings.Repeat("x", 1000))
		}

		p.WaitClosed()
	}), MaxMessage: 8 << 10, MaxList: 50 << 10})

	items, err := c.List(t.Context(), "QueueStatus")
	if err != nil {
		t.Fatal(err)
	}

	if len(items) != 27 {
		t.Errorf("%d items", len(items))
	}

	for _, e := range c.Take() {
		if e.Name() != "Hangup" {
			t.Errorf("%s is not in the list", e.Name())
		}
	}

	var refusal *Refusal
	if _, err := c.List(t.Context(), "QueueStatus", Field{"Queue", "x"}); !errors.As(err, &refusal) ||
		refusal.Message != "No such queue" {
		t.Errorf("an error: %v", err)
	}
	if _, err := c.List(t.Context(), "QueueStatus"); !errors.Is(err, ErrListCancelled) {
		t.Errorf("a cancelled list: %v", err)
	}
	if _, err := c.List(t.Context(), "QueueStatus"); !errors.Is(err, ErrListTooLarge) {
		t.Errorf("a list above the limit: %v", err)
	}
}

// An event with the id of an answered action is an event like any other.
func TestOriginateResponseIsAnEvent(t *testing.T) {
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		a, _ := p.readAction()
		p.answer(a, "Response: Success", "Message: Originate successfully queued")
		p.answer(a, "Event: OriginateResponse", "Response: Failure")
		p.WaitClosed()
	})})
	if _, err := c.Do(t.Context(), Action{Name: "Originate", ID: "call-1"}); err != nil {
		t.Fatal(err)
	}
	if e := conntest.TakeEvents(t, c.Conn, 1)[0]; e.Name() != "OriginateResponse" || e.Get("ActionID") != "call-1" {
		t.Errorf("got %v", e.Fields)
	}
}

func TestActionsThatAreNotSent(t *testing.T) {
	c := dialClient(t,
		Config{Address: afterLogin(t, func(p *peer) { p.WaitClosed() }), MaxPending: 2,
			ActionTimeout: conntest.Patience})

	for _, text := range []string{"a\nb", "a\rb", "a\x00b"} {
		for _, a := range []Action{{Name: text}, {Name: "X", ID: text}, {Name: "X", Fields: []Field{{"K", text}}},
			{Name: "X", Fields: []Field{{text, "v"}}}} {
			if _, err := c.Do(t.Context(), a); !errors.Is(err, ErrInvalidAction) {
				t.Errorf("%q: %v", a, err)
			}
		}
	}

	var waiting sync.WaitGroup
	for _, id := range []string{"one", "two"} {
		waiting.Go(func() {
			if _, err := c.Do(t.Context(), Action{Name: "X", ID: id}); !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	}

	for pending := 0; pending < 2; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		pending = len(c.waiters)
		c.mu.Unlock()
	}

	if _, err := c.Do(t.Context(), Action{Name: "X"}); !errors.Is(err, ErrBusy) {
		t.Errorf("a third action: %v", err)
	}

	c.Close()
	waiting.Wait()
}

func TestActionIDIsUsedOnceAtATime(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		for i := range 2 {
			a, err := p.readAction()
			if err != nil {
				return
			}

			if i == 0 {
				close(asked)
				<-release
			}

			p.answer(a, "Response: Success")
		}

		p.WaitClosed()
	})})

	done := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), Action{Name: "X", ID: "same"})
		done <- err
	}()

	<-asked
	if _, err := c.Do(t.Context(), Action{Name: "X", ID: "same"}); !errors.Is(err, ErrDuplicateID) {
		t.Errorf("got %v", err)
	}

	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), Action{Name: "X", ID: "same"}); err != nil {
		t.Error(err)
	}
}
