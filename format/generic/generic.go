package generic

import (
	"maps"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// eventFormat is the format {type, account_id?, timestamp?, queue_id?, data?}. Members
// about agents and calls may be inside data or beside it.
var eventFormat = format.Format{
	Name: "generic", Topic: event.TopicRaw,
	Keys: func() jsonscan.Keys {
		keys := jsonscan.KeysOf("type", "account_id", "timestamp", "queue_id", "data")
		maps.Copy(keys, contactCenterKeys)
		return format.CallEventKeys(keys)
	}(),
	ReadAccount: func(f *format.Fields) (string, error) {
		return format.StrictText(f[genericAccount], "account_id")
	},
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		name, err := format.StrictText(f[genericType], "type")
		if err != nil {
			return format.Event{}, err
		}
		if name == "" {
			return format.Event{}, format.RejectMissing("type")
		}

		e := format.Event{Type: event.Type(name)}
		if !e.Type.Known() {
			return format.Event{},
				format.Rejectf(format.UnknownType, "type: not one of the event types in docs/channel.md")
		}

		e.Facts.TimestampMS, err = format.StrictTimestamp(f[genericTime], "timestamp")
		if err != nil {
			return format.Event{}, err
		}
		e.Timestamp = e.Facts.TimestampMS / 1000

		// What data has replaces what stands beside it.
		dataKeys.ScanObject(f[genericData], f[:])
		e.Facts.QueueID = format.FirstText(f[genericQueue], f[genericDataQueue])
		format.AddContactCenter(f[genericFirstSharedKey:], &e)
		return e, nil
	},
}

// Slots of the keys of eventFormat in the fields of a record.
const (
	genericType = iota
	genericAccount
	genericTime
	genericQueue
	genericData
	genericDataQueue
	genericFirstSharedKey // the slots from here on are those of format.ContactCenterKeys
)

// The slots of keys: contactCenterKeys of those beside "data", dataKeys of those within it.
var (
	contactCenterKeys = format.ContactCenterKeys(genericFirstSharedKey)
	dataKeys          = func() jsonscan.Keys {
		keys := maps.Clone(contactCenterKeys)
		keys["queue_id"], keys["Queue-ID"] = genericDataQueue, genericDataQueue
		return keys
	}()
)
