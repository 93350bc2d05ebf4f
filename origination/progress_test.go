package origination

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestStepsGoForwardOnly(t *testing.T) {
	for name, c := range map[string]struct{ said, want []State }{
		"in order": {states[1:], states[:]},
		"repeated": {[]State{RingingUser, RingingUser, UserAnswered},
			[]State{Accepted, RingingUser, UserAnswered}},
		"late": {[]State{UserAnswered, RingingUser, Dialling},
			[]State{Accepted, UserAnswered, Dialling}},
		"skipped":                {[]State{Bridged}, []State{Accepted, Bridged}},
		"after the end":          {[]State{Ended, Bridged, Ended}, []State{Accepted, Ended}},
		"a state that is none":   {[]State{"held", RingingUser}, []State{Accepted, RingingUser}},
		"accepted a second time": {[]State{Accepted, Ended}, []State{Accepted, Ended}},
	} {
		t.Run(name, func(t *testing.T) {
			var call Call
			call.advance(Progress{State: Accepted})
			for _, state := range c.said {
				call.advance(Progress{State: state})
			}

			if got := statesOf(call.History); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func statesOf(history []Step) (all []State) {
	for _, step := range history {
		all = append(all, step.State)
	}
	return all
}

// For any reports of a platform, in any order and with any clock: the states in the history rise, their
// times do not decrease, the call's state is the last one, the end has a cause, and repeated reports
// change nothing.
func TestNoReportsMakeACallGoBack(t *testing.T) {
	said := append(slices.Clone(states[:]), "nonsense", "")
	for round := range 5000 {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		var call Call
		call.advance(Progress{State: Accepted, At: time.UnixMilli(1_795_000_000_000)})
		var reports []Progress

		for range random.IntN(20) {
			reports = append(reports, Progress{
				State: said[random.IntN(len(said))], Cause: []string{"", "USER_BUSY", "no such cause"}[random.IntN(3)],
				At: time.UnixMilli(1_795_000_000_000 + int64(random.IntN(2000)) - 1000),
			})
		}

		for _, p := range reports {
			before := len(call.History)
			taken := call.advance(p)
			if taken != (len(call.History) == before+1) || taken && call.State != p.State {
				t.Fatalf("round %d: taken %v, history %v", round, taken, call.History)
			}
		}

		for i, step := range call.History[1:] {
			if step.State.Rank() <= call.History[i].State.Rank() || step.At.Before(call.History[i].At.Time) {
				t.Fatalf("round %d: history %v", round, call.History)
			}
		}

		if last := call.History[len(call.History)-1].State; call.State != last ||
			(call.Cause != "") != (last == Ended) {
			t.Fatalf("round %d: %+v", round, call)
		}

		whole := len(call.History)
		if call.State == Ended {
			for _, p := range reports {
				call.advance(p)
			}
		}

		if len(call.History) != whole {
			t.Fatalf("round %d: a repeat changed the call", round)
		}
	}
}

func TestCausesAreNames(t *testing.T) {
	for said, want := range map[string]string{
		"USER_BUSY": "USER_BUSY", "": CauseUnknown, "user busy": CauseUnknown, "A\"B": CauseUnknown,
		"INTERWORKING":      "INTERWORKING",
		"SUBSCRIBER_ABSENT": "SUBSCRIBER_ABSENT", "USER_NOT_REGISTERED": "SUBSCRIBER_ABSENT",
	} {
		if got := causeOf(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}

func TestMomentsHaveAFraction(t *testing.T) {
	at := Moment{time.UnixMilli(1_795_169_706_120)}
	text, err := json.Marshal(Step{Accepted, at})
	if err != nil || string(text) != `{"state":"accepted","at":1795169706.120}` {
		t.Fatalf("%s, %v", text, err)
	}

	for ms := range int64(2000) {
		at := Moment{time.UnixMilli(1_795_169_706_000 + ms)}
		text, _ := json.Marshal(at)
		var back Moment
		if err := json.Unmarshal(text, &back); err != nil || !back.Equal(at.Time) {
			t.Fatalf("%s came back as %v: %v", text, back, err)
		}
	}
}
