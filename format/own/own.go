// Package own has the format of Trunkline's own events (call progress, recording
// stored, AI session).
package own

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Source lists the one format of Trunkline's own events. It is never recognised
// by a record's keys: only the header makes a record ours.
var Source = format.Source{Formats: []*format.Format{&events}}

// events is {event, account_id, timestamp, …}.
var events = format.Format{
	Name: event.FormatOwn, Topic: event.TopicRaw, Internal: true,
	Keys: jsonscan.KeysOf("event", "account_id", "timestamp"),
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
		at, err := format.StrictClock(f[ownTime], "timestamp")
		return format.Event{Type: event.Custom, Timestamp: at}, err
	},
}

const (
	ownName = iota
	ownAccount
	ownTime
)
