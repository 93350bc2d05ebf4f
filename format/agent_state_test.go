package format

import (
	"testing"

	"trunkline/event"
)

func TestAgentStates(t *testing.T) {
	for _, c := range []struct{ activity, presence, want event.State }{
		{"", "", ""},
		{event.Talking, "", event.Talking},
		{"", event.Break, event.Break},
		{event.Available, event.Break, event.Break},
		{event.Talking, event.Break, event.Talking},
		{event.WrapUp, event.Available, event.WrapUp},
		{event.Talking, event.Offline, event.Offline},
		{event.Offline, event.Available, event.Offline},
		{event.OtherState, event.Available, event.Available},
		{event.OtherState, "", event.OtherState},
		{event.Available, event.OtherState, event.Available},
	} {
		if got := AgentState(c.activity, c.presence); got != c.want {
			t.Errorf("%q with %q: got %q, want %q", c.activity, c.presence, got, c.want)
		}
	}
}
