package channelclient

import (
	"testing"
	"time"

	"trunkline/internal/retry"
)

func TestPace(t *testing.T) {
	p := reconnectDelay{retry.Backoff{First: 100 * time.Millisecond, Max: time.Second}}
	within := func(what string, got, least, most time.Duration) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: waits %s, want %s to %s", what, got, least, most)
		}
	}
	within("asked back at once", p.next(reconnectPlan{immediately: true}), 0, 100*time.Millisecond)
	within("a second failure", p.next(reconnectPlan{}), 100*time.Millisecond, 200*time.Millisecond)
	within("a third", p.next(reconnectPlan{}), 200*time.Millisecond, 400*time.Millisecond)
	within("told when", p.next(reconnectPlan{after: 5 * time.Second}), 5*time.Second, 6*time.Second)
	for range 100 {
		within("at its longest", p.next(reconnectPlan{}), 0, time.Second)
	}
	p.Reset()
	within("after some success", p.next(reconnectPlan{}), 50*time.Millisecond, 100*time.Millisecond)
}
