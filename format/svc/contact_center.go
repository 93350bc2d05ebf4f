package svc

import (
	"maps"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// contactCenterFormat is the format of the contact-center event of docs/topics.md, which has
// no timestamp.
var contactCenterFormat = format.Format{
	Name: "svc.cc", Topic: event.TopicRaw,
	Keys: func() jsonscan.Keys {
		keys := jsonscan.KeysOf("Account-ID", "Type", "Queue-ID")
		maps.Copy(keys, format.ContactCenterKeys(svcFirstSharedKey))
		return format.CallEventKeys(keys)
	}(),
	ReadAccount: func(f *format.Fields) (string, error) {
		return format.StrictText(f[svcAccount], "Account-ID")
	},
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		name, err := format.StrictText(f[svcType], "Type")
		if err != nil {
			return format.Event{}, err
		}

		e := format.Event{Type: event.Type(name)}
		if !e.Type.Known() {
			e.Type = event.Custom
		}

		e.Facts.QueueID, err = format.StrictText(f[svcQueue], "Queue-ID")
		if err != nil {
			return e, err
		}

		format.AddContactCenter(f[svcFirstSharedKey:], &e)
		return e, nil
	},
}

// Slots of the keys of contactCenterFormat in the fields of a record.
const (
	svcAccount = iota
	svcType
	svcQueue
	svcFirstSharedKey // the first of format.ContactCenterKeys
)
