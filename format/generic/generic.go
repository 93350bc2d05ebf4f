package generic

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// events is the format {type, account_id?, timestamp?, queue_id?, data?}.
var events = format.Format{
	Name: "generic", Topic: event.TopicRaw,
	Keys: jsonscan.KeysOf("type", "account_id", "timestamp", "queue_id", "data"),
	Account: func(f *format.Fields) (string, error) {
		return format.StrictText(f[genericAccount], "account_id")
	},
	Event: func(f *format.Fields) (format.Event, error) {
		name, err := format.StrictText(f[genericType], "type")
		if err != nil {
			return format.Event{}, err
		}
		if name == "" {
			return format.Event{}, format.RejectMissing("type")
		}
		e := format.Event{Type: event.Type(name)}
		if !e.Type.Known() {
			return format.Event{}, format.Rejectf(format.UnknownType, "type: not one of the specification's event types")
		}
		if e.Timestamp, err = format.StrictClock(f[genericTime], "timestamp"); err != nil {
			return format.Event{}, err
		}
		var inner [1]jsonscan.Value
		format.Within(f[genericData], queueKeys, inner[:])
		e.QueueID = format.FirstText(f[genericQueue], inner[0])
		return e, nil
	},
}

const (
	genericType = iota
	genericAccount
	genericTime
	genericQueue
	genericData
)

var queueKeys = jsonscan.Keys{"queue_id": 0, "Queue-ID": 0}
