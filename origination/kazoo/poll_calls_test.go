package kazoo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/origination"
)

// collectReports follows d until the test ends, and returns its reports so far.
func collectReports(t *testing.T, d *Driver, open ...origination.OpenCall) (reported func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.Follow(ctx, open, func(p origination.Progress) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, fmt.Sprintf("%s %s %s", p.CallID, p.State, p.Cause))
		})
	}()

	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestACallIsFollowed(t *testing.T) {
	k := newScriptedCrossbar(t, loginExchange("t1"), connectExchange("c1", 202, `{"data":{"call_id":"o1"}}`),
		channelExchange(404, `{}`), channelExchange(200, `{"data":{"answered":false}}`), channelExchange(500, `{}`),
		channelExchange(200, `{"data":{"answered":true}}`),
		channelExchange(200, `{"data":{"answered":true}}`),
		channelExchange(200, `{"data":{"answered":true,"other_leg_call_id":"x"}}`), channelExchange(404, `{}`),
		historyExchange(`{"data":[{"call_id":"other","cause":"NO_ANSWER"},{"call_id":"o1","cause":"NORMAL_CLEARING"}]}`))
	d := k.newDriver()
	if _, err := d.Originate(t.Context(), order("c1")); err != nil {
		t.Fatal(err)
	}

	reported := collectReports(t, d)
	want := []string{"o1 ringing_user ", "o1 user_answered ", "o1 bridged ", "o1 ended NORMAL_CLEARING"}
	within(t, "it has ended", func() bool { return slices.Equal(reported(), want) })
	within(t, "it is not asked about any more", func() bool { return len(d.followedCalls()) == 0 })
}

func TestACallOfBeforeGoesOn(t *testing.T) {
	k := newScriptedCrossbar(t, loginExchange("t1"), channelExchange(404, `{}`), historyExchange(`not json`))
	d := k.newDriver()
	reported := collectReports(t, d, origination.OpenCall{Order: order("c1"), CallID: "o1", State: origination.Bridged})
	within(t, "it has ended",
		func() bool { return slices.Equal(reported(), []string{"o1 ended " + origination.CauseUnknown}) })
}
