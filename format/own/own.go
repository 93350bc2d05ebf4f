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
var Source = format.Source{Formats: []*format.Format{&eventFormat, &performanceFormat}}

// eventFormat is {event, account_id, timestamp, …}.
var eventFormat = format.Format{
	Name: event.FormatOwn, Topic: event.TopicRaw, Internal: true,
	Keys: jsonscan.KeysOf("event", "account_id", "timestamp", "origination_call_id", "state", "cause", "reason",
		"call_id", "agent_id", "queue_id", "action", "name", "feed", "interaction_id"),
	ReadAccount: func(f *format.Fields) (string, error) {
		return format.StrictText(f[ownAccount], "account_id")
	},
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		name, err := format.StrictText(f[ownName], "event")
		if err != nil {
			return format.Event{}, err
		}
		if name == "" {
			return format.Event{}, format.RejectMissing("event")
		}

		timestampMS, err := format.StrictTimestamp(f[ownTime], "timestamp")
		return format.Event{Type: event.Custom, Timestamp: timestampMS / 1000,
			Facts: readFacts(f, event.Name(name), timestampMS)}, err
	},
}

// Slots of the keys of eventFormat in the fields of a record.
const (
	ownName = iota
	ownAccount
	ownTime
	ownOrigination
	ownState
	ownCause
	ownReason
	ownCall
	ownAgent
	ownQueue
	ownAction
	ownAlert // the member name: of an alert
	ownFeed
	ownInteraction
)

// readFacts returns the facts of an event. An unknown name, which a later version may
// send, becomes "other".
func readFacts(f *format.Fields, name event.Name, timestampMS int64) event.Facts {
	facts := event.Facts{
		Name: name, TimestampMS: timestampMS, OriginationCallID: format.Text(f[ownOrigination]),
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
	case event.NameRecordingStored:
		facts.AgentID, facts.QueueID, facts.InteractionID = format.Text(f[ownAgent]), format.Text(
			f[ownQueue]), format.Text(f[ownInteraction])
	case event.NameAISession:
	case event.NameCallTranscript:
		facts.InteractionID = format.Text(f[ownInteraction])
	case event.NameControlAction:
		facts.AgentID, facts.QueueID, facts.Reason = format.Text(f[ownAgent]), format.Text(f[ownQueue]), format.Text(
			f[ownAction])
	case event.NameAlertStarted, event.NameAlertEnded:
		facts.AgentID, facts.QueueID, facts.Reason = format.Text(f[ownAgent]), format.Text(f[ownQueue]), format.Text(
			f[ownAlert])
	case event.NameFeedConnected, event.NameFeedDisconnected:
		facts.Reason = format.Text(f[ownFeed])
	default:
		facts.Name = event.NameOther
	}

	return facts
}
