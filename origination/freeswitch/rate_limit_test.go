package freeswitch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/drivertest"
)

func TestTheSwitchsLimitIsRead(t *testing.T) {
	for text, want := range map[string]int{
		vanillaStatus(30): 30,
		"0 session(s) per Sec out of max 200, peak 1, last 5min 0 `+`\n": 200,
		"1 session(s) per Sec out of max 30\n":                           30,
		"1000 session(s) max\n":                                          0,
		"":                                                               0,
		"session(s) per Sec out of max 99999999999999": 0,
	} {
		if got := readStatus(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// More calls at once than the switch takes: none is refused, and they come no
// faster than its sessions-per-second allow.
func TestCallsKeepToTheSwitchsLimit(t *testing.T) {
	const sessions, calls = 60, 12
	s := newScripted(t, &scriptedSwitch{status: vanillaStatus(sessions)})
	d, probe, j := follow(t, s.driverConfig())
	var all sync.WaitGroup
	began := time.Now()

	for i := range calls {
		all.Go(func() {
			if _, err := d.Originate(t.Context(), drivertest.OrderTo(fmt.Sprint("c", i), "2001")); err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()
	for i := range calls {
		j.Await(t, fmt.Sprint("c", i), origination.Ended)
	}

	s.Mu.Lock()
	defer s.Mu.Unlock()

	const least = (calls - 1) * sessionsPerCall * time.Second / sessions
	if took := slices.MaxFunc(s.originatedAt, time.Time.Compare).Sub(began); took < least {
		t.Errorf("%d calls within %s, at %d sessions per second they take %s", calls, took, sessions, least)
	}
	if !strings.Contains(probe.Log.String(), "call queued") ||
		!strings.Contains(probe.Log.String(), "sessions_per_second=60") {
		t.Errorf("the log does not have it:\n%s", probe.Log)
	}
	if got := probe.Metric(t, "sessions_per_second"); got != sessions {
		t.Errorf("the metric says %v sessions per second", got)
	}
}

func TestACallWhoseTurnWouldComeTooLateIsRefused(t *testing.T) {
	s := newScripted(t, &scriptedSwitch{status: vanillaStatus(1)})
	d, probe, j := follow(t, s.driverConfig())
	if _, err := d.Originate(t.Context(), drivertest.OrderTo("first", "2001")); err != nil {
		t.Fatal(err)
	}

	d.platform.pace.limiter.SetLimit(0.001) // the next turn comes in a quarter of an hour, however slow this machine is
	d.platform.pace.maxWait = time.Second
	_, err := d.Originate(t.Context(), drivertest.OrderTo("second", "2001"))
	if f := fault.As(err); f.Kind != fault.KindUnavailable || f.RetryAfter < time.Second ||
		!strings.Contains(f.Message, "sessions per second") {
		t.Errorf("got %v", err)
	}
	if probe.Metric(t, "queue_refused_total") != 1 || !strings.Contains(probe.Log.String(), "call refused") {
		t.Errorf("neither counted nor logged:\n%s", probe.Log)
	}

	d.platform.pace.maxWait = time.Hour
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()

	if _, err := d.Originate(soon, drivertest.OrderTo("third", "2001")); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("a request that ends before its turn: %v", err)
	}

	s.Mu.Lock()
	s.status = vanillaStatus(1_000_000) // fsctl sps 1000000
	s.Mu.Unlock()

	drivertest.Until(t, "the new limit is known",
		func() bool { return d.platform.pace.currentSessionsPerSecond() == 1_000_000 })
	if _, err := d.Originate(t.Context(), drivertest.OrderTo("fourth", "2001")); err != nil {
		t.Error(err)
	}

	j.Await(t, "first", origination.Ended)
	j.Await(t, "fourth", origination.Ended)
	probe.AwaitNoCalls(t)
	s.Mu.Lock()
	defer s.Mu.Unlock()

	if len(s.ownerDomains) != 2 {
		t.Errorf("%d calls were placed", len(s.ownerDomains))
	}
}

func TestASwitchThatDoesNotSayItsLimit(t *testing.T) {
	s := newScripted(t, &scriptedSwitch{status: "-ERR permission denied\n"})
	d, probe, j := follow(t, s.driverConfig())
	for i := range 20 {
		if _, err := d.Originate(t.Context(), drivertest.OrderTo(fmt.Sprint("c", i), "2001")); err != nil {
			t.Fatal(err)
		}
	}

	for i := range 20 {
		j.Await(t, fmt.Sprint("c", i), origination.Ended)
	}

	if !strings.Contains(probe.Log.String(), "sessions-per-second of the switch unknown") ||
		strings.Contains(probe.Log.String(), "call queued") {
		t.Errorf("the log says\n%s", probe.Log)
	}
}
