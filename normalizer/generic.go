package normalizer

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// generic is {type, account_id?, timestamp?, data?} for sources that already
// speak the specification's types.
var generic = format{
	name: "generic",
	keys: jsonscan.KeysOf("type", "account_id", "timestamp", "queue_id", "data"),
	account: func(f *fields) (string, error) {
		return ownStr(f[genericAccount], "account_id")
	},
	facts: func(f *fields) (facts, error) {
		name, err := ownStr(f[genericType], "type")
		if err != nil {
			return facts{}, err
		}
		if name == "" {
			return facts{}, missing("type")
		}
		what := facts{kind: event.Type(name)}
		if !what.kind.Known() {
			return facts{}, reject(UnknownType, "type: not one of the specification's event types")
		}
		if what.timestamp, err = ownClock(f[genericTime], "timestamp"); err != nil {
			return facts{}, err
		}
		var inner [1]jsonscan.Value
		within(f[genericData], queueKeys, inner[:])
		what.queue = firstStr(f[genericQueue], inner[0])
		return what, nil
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

// ownClock is a clock of one of our own formats: absent, or a number.
func ownClock(v jsonscan.Value, field string) (int64, error) {
	if v.Kind() == jsonscan.None {
		return 0, nil
	}
	if v.Kind() != jsonscan.Number {
		return 0, wrongType(field, "Unix seconds")
	}
	n, ok := integer(v)
	if !ok || n < 0 {
		return 0, outOfRange(field)
	}
	n, _ = unixSeconds(v)
	return n, nil
}
