// Package own has the formats of Trunkline's own events: trunkline.event (call
// progress, recording stored, AI session) and trunkline.performance (an agent's
// figures).
package own

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Source lists the formats of Trunkline's own events. They are never recognised by a
// record's keys, only by the format header.
var Source = format.Source{Formats: []*format.Format{&events, &performance}}

// events is {event, account_id, timestamp, …}.
var events = format.Format{
	Name: event.FormatOwn, Topic: event.TopicRaw, Internal: true,
	Keys: jsonscan.KeysOf("event", "account_id", "timestamp", "origination_call_id", "state", "cause", "reason", "call_id"),
	Account: func(f *format.Fields) (string, error) {
		return format.StrictText(f[ownAccount], "account_id")
	},
	Event: func(f *format.Fields) (format.Event, error) {
		name, err := format.StrictText(f[ownName], "event")
		if err != nil {
			return format.Event{}, err
		}
		if name == "" {
			return format.Event{}, format.RejectMissing("event")
		}
		at, err := format.StrictTimestamp(f[ownTime], "timestamp")
		return format.Event{Type: event.Custom, Timestamp: at / 1000, Facts: facts(f, event.Name(name), at)}, err
	},
}

const (
	ownName = iota
	ownAccount
	ownTime
	ownOrigination
	ownState
	ownCause
	ownReason
	ownCall
)

// facts returns the facts of an event. An unknown name, which a later version may
// send, becomes "other".
func facts(f *format.Fields, name event.Name, at int64) event.Facts {
	facts := event.Facts{
		Name: name, TimestampMS: at, OriginationCallID: format.Text(f[ownOrigination]),
		CallID: format.Text(f[ownCall]), Reason: format.FirstText(f[ownCause], f[ownReason]),
	}
	switch name {
	case event.NameCallProgress:
		switch format.Text(f[ownState]) {
		case "ringing_user":
			facts.State = event.Ringing
		case "bridged":
			facts.State = event.Talking
		case "ended":
			facts.State = event.Ended
		}
	case event.NameRecordingStored, event.NameAISession:
	default:
		facts.Name = event.NameOther
	}
	return facts
}
