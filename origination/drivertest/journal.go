package drivertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/origination"
)

// Journal has the reports of a driver.
type Journal struct {
	mu    sync.Mutex
	steps map[string][]origination.Progress
	more  chan struct{} // closed at the next report
}

// Follow runs follow, a driver's Follow, until stop or the end of the test.
func Follow(t *testing.T, follow func(context.Context, []origination.OpenCall, func(origination.Progress)) error,
	open []origination.OpenCall) (j *Journal, stop func()) {
	t.Helper()
	j = &Journal{steps: make(map[string][]origination.Progress), more: make(chan struct{})}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := follow(ctx, open, j.report); err != nil {
			t.Errorf("Follow: %v", err)
		}
	}()

	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return j, stop
}

func (j *Journal) report(p origination.Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps[p.CallID] = append(j.steps[p.CallID], p)
	close(j.more)
	j.more = make(chan struct{})
}

// States returns the states of a call, each followed by its cause if it has one.
func (j *Journal) States(id string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()

	var states []string
	for _, p := range j.steps[id] {
		states = append(states, string(p.State))
		if p.Cause != "" {
			states = append(states, p.Cause)
		}
	}

	return states
}

// Await waits until a call has been reported in a state.
func (j *Journal) Await(t *testing.T, id string, state origination.State) {
	t.Helper()
	timeout := time.After(3 * time.Minute)
	for {
		j.mu.Lock()
		there := slices.ContainsFunc(j.steps[id], func(p origination.Progress) bool { return p.State == state })
		more := j.more
		j.mu.Unlock()

		if there {
			return
		}

		select {
		case <-more:
		case <-timeout:
			t.Fatalf("%s did not come to %s: %v", id, state, j.States(id))
		}
	}
}

// Names of states.
const (
	Ringing  = string(origination.RingingUser)
	Answered = string(origination.UserAnswered)
	Dialling = string(origination.Dialling)
	Bridged  = string(origination.Bridged)
	Ended    = string(origination.Ended)
)

// WellFormed reports whether the states rise and end once, with a cause.
func WellFormed(states []string) bool {
	last := 0
	for i, s := range states {
		if s == Ended {
			return i == len(states)-2
		}

		rank := origination.State(s).Rank()
		if rank <= last {
			return false
		}

		last = rank
	}

	return false
}
