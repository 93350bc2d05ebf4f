package asterisk

import (
	"strings"
	"time"

	"trunkline/event"
	"trunkline/format"
)

// Member holds the fields of an AMI event about a member of a queue.
type Member struct {
	Interface      string
	StateInterface string // whose state the status is; "": unknown
	Status         string // of the device, a number
	InCall         bool
	Paused         bool
	PausedReason   string
	LastPause      int64 // Unix seconds, 0 if none
	LastCall       int64 // Unix seconds, 0 if none
	WrapUpTime     int64 // seconds; the member's own, not that of its queue
	AtMS           int64 // Unix milliseconds of the event, 0 if unknown
}

// readMember reads the member of an AMI event.
func readMember(f *format.Fields) Member {
	m := Member{
		Interface: text(f[amiInterface]), StateInterface: text(f[amiStateInterface]), Status: text(f[amiStatus]),
		InCall: text(f[amiInCall]) == "1", Paused: text(f[amiPaused]) == "1", PausedReason: text(f[amiPausedReason]),
		AtMS: format.FirstTimestamp(firstValue(f[amiTime])),
	}
	m.LastPause, _ = format.Integer(firstValue(f[amiLastPause]))
	m.LastCall, _ = format.Integer(firstValue(f[amiLastCall]))
	m.WrapUpTime, _ = format.Integer(firstValue(f[amiWrapUpTime]))
	return m
}

// WrapUpEnd returns when the member's pause after its last call ends.
func (m *Member) WrapUpEnd() time.Time { return time.Unix(m.LastCall+m.WrapUpTime, 0) }

// poolAgent begins the state interface of a member that is an agent of app_agent_pool.
const poolAgent = "Agent:"

// AgentReport returns what the fields report of the member.
func (m *Member) AgentReport() *event.AgentReport {
	report := &event.AgentReport{Device: m.device(), InCall: m.InCall, Paused: m.Paused}
	if m.Paused {
		report.Reason, report.PausedSince = m.PausedReason, m.LastPause
	}

	if id, ok := strings.CutPrefix(m.StateInterface, poolAgent); ok { // whose logins and logouts have that id
		report.OtherID, report.Presence = id, event.Available
		if report.Device == event.DeviceUnreachable {
			report.Presence, report.Reason = event.Offline, ""
		}
	}

	if m.wrapsUp() {
		report.WrapUpUntilMS = m.WrapUpEnd().UnixMilli()
	}

	return report
}

// device returns the state of the member's phone. A Local channel is in use from the
// moment it is dialled, so that it may be ringing or talking, unless its state is that of a
// phone. An agent of app_agent_pool is busy before, during and after a call of the pool, and
// has no others.
func (m *Member) device() event.Device {
	switch m.Status {
	case "1": // not in use
		return event.DeviceIdle
	case "2", "7", "8": // in use, in use and ringing, on hold
		switch {
		case strings.HasPrefix(m.StateInterface, poolAgent) && !m.InCall:
			return event.DeviceWrapUp
		case strings.HasPrefix(m.Interface, "Local/") &&
			(m.StateInterface == "" || strings.HasPrefix(m.StateInterface, "Local/")):
			return event.DeviceUnknown
		}

		return event.DeviceInUse
	case "3": // busy: on a call, or do not disturb
		if strings.HasPrefix(m.StateInterface, poolAgent) && !m.InCall {
			return event.DeviceWrapUp
		}
		return event.DeviceBusy
	case "4", "5": // invalid, unavailable
		return event.DeviceUnreachable
	case "6":
		return event.DeviceRinging
	}

	return event.DeviceUnknown // of which its technology tells nothing: the queue calls it
}

// wrapsUp reports whether the member is in wrap-up at the time of the event.
func (m *Member) wrapsUp() bool {
	return m.LastCall > 0 && m.WrapUpTime > 0 && m.AtMS > 0 && m.AtMS < m.WrapUpEnd().UnixMilli()
}

// State returns the state of a member by its fields alone, or "" if they do not determine
// it.
func (m *Member) State() event.State {
	device := m.device()
	switch {
	case m.InCall && device != event.DeviceIdle, device == event.DeviceInUse:
		return event.Talking
	case device == event.DeviceRinging:
		return event.Ringing
	case device == event.DeviceWrapUp:
		return event.WrapUp
	case m.Paused:
		return event.Break
	case m.wrapsUp():
		return event.WrapUp
	case device == event.DeviceUnknown && m.Status != statusUnknown:
		return ""
	case device == event.DeviceBusy, device == event.DeviceUnreachable:
		return event.OtherState
	}

	return event.Available
}

// statusUnknown is the status of a phone of which its technology tells nothing.
const statusUnknown = "0"
