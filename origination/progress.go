package origination

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Step is a state that a call has reached, with its time.
type Step struct {
	State State  `json:"state"`
	At    Moment `json:"at"`
}

// Moment is a time as the API writes it: Unix seconds with a fraction, to the
// millisecond.
type Moment struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m.UnixMilli())/1000, 'f', 3, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Moment) UnmarshalJSON(text []byte) error {
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return err
	}
	// Rounded: most thousandths have no exact binary form.
	m.Time = time.UnixMilli(int64(seconds*1000 + 0.5))
	return nil
}

// Call is the progress of a call.
type Call struct {
	ID      string `json:"origination_call_id"`
	State   State  `json:"state"`
	Cause   string `json:"cause,omitempty"`
	History []Step `json:"history"`
}

// Causes that the service itself sets. They are Q.850 names, as in hangup_cause.
const (
	CauseCancelled = "ORIGINATOR_CANCEL"
	// CauseAbsent is the cause of calls to a user without a registered phone.
	CauseAbsent = "SUBSCRIBER_ABSENT"
	// CauseLost is the cause of calls whose end was not reported, because they ended with their
	// process or while it was down.
	CauseLost = "NORMAL_TEMPORARY_FAILURE"
	// CauseUnknown is the cause of calls whose platform gave no valid one.
	CauseUnknown = "NORMAL_UNSPECIFIED"
)

var states = [...]State{Accepted, RingingUser, UserAnswered, Dialling, Bridged, Ended}

// Rank returns the state's index in the order of states, or -1 for an unknown state.
func (s State) Rank() int { return slices.Index(states[:], s) }

// advance applies a step that moves the call forward, and reports whether it did. States may be
// skipped, and nothing follows Ended. Late and repeated steps change nothing. The times in the history
// do not decrease.
func (c *Call) advance(p Progress) (taken bool) {
	if p.State.Rank() <= c.State.Rank() {
		return false
	}

	at := p.At
	if at.IsZero() {
		at = time.Now()
	}

	n := len(c.History)
	if n > 0 && at.Before(c.History[n-1].At.Time) {
		at = c.History[n-1].At.Time
	}

	c.State = p.State
	if p.State == Ended {
		c.Cause = causeOf(p.Cause)
	}

	c.History = append(c.History, Step{p.State, Moment{at.Truncate(time.Millisecond)}})
	return true
}

var causePattern = regexp.MustCompile(`^[A-Z0-9_]{1,64}$`)

// causeOf returns a platform's cause as shown in progress. FreeSWITCH 1.10.4 and later report
// USER_NOT_REGISTERED for a user without a registered phone, which becomes CauseAbsent.
func causeOf(cause string) string {
	if cause == "USER_NOT_REGISTERED" {
		return CauseAbsent
	}
	if !causePattern.MatchString(cause) {
		return CauseUnknown
	}
	return cause
}
