package listening

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/fault"
)

// center is a platform with calls, and the rules about them.
type center struct {
	mu      sync.Mutex
	rules   []aiprovider.QueueRule
	entries map[state.Key]*state.Entry
	version int64  // of entries
	reads   int    // of entries
	lost    error  // of the rules and the state
	unread  string // the account whose state is not read
	refusal error
	asked   []string
}

func (c *center) ListRules(context.Context) ([]aiprovider.QueueRule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rules), c.lost
}

func (c *center) CallsInQueues(_ context.Context, account string) (calls []*state.Entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if account == c.unread {
		return nil, errors.New("the account's state is not read")
	}

	for key, e := range c.entries {
		if key.Account == account && e.IsLiveVisit() {
			calls = append(calls, e)
		}
	}
	return calls, c.lost
}

func (c *center) CallsVersion(string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func (c *center) Transfer(context.Context, aisession.PlatformCall, string) error { return nil }

func (c *center) Hangup(context.Context, aisession.PlatformCall) error { return nil }

func (c *center) AddListener(_ context.Context, of aisession.PlatformCall, h aisession.ListenRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.ByRule || h.SessionID == "" {
		return fault.Invalid("no rule asks")
	}
	c.asked = append(c.asked, fmt.Sprintf("%s hears %s of %s", of.ProviderID, of.CallID, of.AccountID))
	return c.refusal
}

// set changes a call. entered is false for a leg of a visit, which is not heard beside it.
func (c *center) set(account, id, queue string, s event.State, entered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &state.Entry{AccountID: account, Kind: state.Call, ID: id, Facts: event.Facts{State: s, QueueID: queue}}
	if entered {
		e.EnteredMS = 1
	}
	c.entries[e.Key()] = e
	c.version++
}

func (c *center) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// TestEveryCallOfAQueueIsHeard follows calls through a day: one that waits, one that talks, one of another queue, a
// platform that is away, a rule that goes.
func TestEveryCallOfAQueueIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &center{entries: make(map[state.Key]*state.Entry)}
		r := NewQueueRules(QueueRulesDeps{Rules: c, Roster: c, Platform: c, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()

		var seen []string
		after := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()

			seen = append(seen, want...)
			if !slices.Equal(c.asked, seen) {
				t.Fatalf("asked %q, want %q", c.asked, seen)
			}
		}

		c.set("demo", "early", "sales", event.Talking, true)
		after(time.Minute)
		c.change(func() {
			c.rules = []aiprovider.QueueRule{{ProviderID: "p1", AccountID: "demo",
				Queues: []string{"sales"}}}
		})

		after(rulesInterval+callsInterval, "p1 hears early of demo")

		c.set("demo", "waits", "sales", event.Waiting, true)
		c.set("demo", "other", "support", event.Talking, true)
		c.set("demo", "leg", "sales", event.Talking, false)
		c.set("below", "theirs", "sales", event.Talking, true)
		after(time.Minute)
		c.set("demo", "waits", "sales", event.Talking, true)
		after(callsInterval, "p1 hears waits of demo")
		c.set("demo", "waits", "sales", event.Held, true)
		c.set("demo", "waits", "sales", event.Talking, true)
		after(time.Minute)

		c.change(func() { c.refusal = errors.New("the feed is away") })
		c.set("demo", "late", "sales", event.Talking, true)
		after(callsInterval, "p1 hears late of demo")
		after(retryPause, "p1 hears late of demo")
		c.change(func() { c.refusal = nil })
		after(retryPause+callsInterval, "p1 hears late of demo")
		c.change(func() { c.lost = errors.New("the state is not read") })
		after(time.Minute)
		c.change(func() { c.lost = nil })
		after(time.Minute)

		c.change(func() { c.rules = nil })
		after(rulesInterval)
		c.set("demo", "unheard", "sales", event.Talking, true)
		after(time.Minute)
		cancel()

		if err := <-ended; err != nil || len(r.attempts) != 0 {
			t.Errorf("ended with %v, %d calls kept", err, len(r.attempts))
		}
	})
}

// TestCallsAreReadWhenTheyChange: looking at them twice a second costs nothing meanwhile, and a change that nobody
// counted is found with the rules.
func TestCallsAreReadWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &center{entries: make(map[state.Key]*state.Entry)}
		r := NewQueueRules(QueueRulesDeps{Rules: c, Roster: c, Platform: c, Log: slog.New(slog.DiscardHandler)})
		rules := []aiprovider.QueueRule{
			{ProviderID: "p1", AccountID: "demo", Queues: []string{"sales"}},
			{ProviderID: "p2", AccountID: "demo", Queues: []string{"sales"}},
		}

		expect := func(when string, reads int) {
			t.Helper()
			if c.reads != reads {
				t.Errorf("%s: read %d times, want %d", when, c.reads, reads)
			}
		}

		c.set("demo", "one", "sales", event.Talking, true)
		for range 5 {
			r.follow(t.Context(), rules)
		}

		expect("unchanged", 1)
		c.set("demo", "two", "sales", event.Talking, true)
		r.follow(t.Context(), rules)
		r.follow(t.Context(), rules)
		expect("changed", 2)
		if len(c.asked) != 4 {
			t.Errorf("asked %q", c.asked)
		}

		time.Sleep(rulesInterval)
		r.follow(t.Context(), rules)
		expect("with the rules", 3)
		c.lost = errors.New("the state is not read")
		time.Sleep(rulesInterval)
		r.follow(t.Context(), rules[:1])
		c.lost = nil
		r.follow(t.Context(), rules)
		expect("after a failure", 5)
		r.follow(t.Context(), nil)
		if len(r.lastRead) != 0 {
			t.Errorf("%d accounts without rules are kept", len(r.lastRead))
		}
	})
}

// TestAnAccountThatIsNotReadHoldsUpNoOther: the rules after it are followed, and what is heard of it is not asked for
// again.
func TestAnAccountThatIsNotReadHoldsUpNoOther(t *testing.T) {
	c := &center{entries: make(map[state.Key]*state.Entry)}
	r := NewQueueRules(QueueRulesDeps{Rules: c, Roster: c, Platform: c, Log: slog.New(slog.DiscardHandler)})
	rules := []aiprovider.QueueRule{
		{ProviderID: "p1", AccountID: "away", Queues: []string{"sales"}},
		{ProviderID: "p2", AccountID: "away", Queues: []string{"sales"}},
		{ProviderID: "p3", AccountID: "demo", Queues: []string{"sales"}},
	}

	c.set("away", "one", "sales", event.Talking, true)
	r.follow(t.Context(), rules)
	c.set("demo", "two", "sales", event.Talking, true)

	want := []string{"p1 hears one of away", "p2 hears one of away", "p3 hears two of demo"}
	for _, unread := range []string{"away", ""} {
		c.unread = unread
		r.follow(t.Context(), rules)
		if !slices.Equal(c.asked, want) {
			t.Errorf("asked %q, want %q", c.asked, want)
		}
	}
}
