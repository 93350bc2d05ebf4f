package normalizer

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// own is Trunkline's own events: {event, account_id, timestamp, …}. It is never
// guessed from a record's keys: only its header makes a record ours.
var own = format{
	name: event.FormatOwn,
	keys: jsonscan.KeysOf("event", "account_id", "timestamp"),
	account: func(f *fields) (string, error) {
		return ownStr(f[ownAccount], "account_id")
	},
	facts: func(f *fields) (facts, error) {
		name, err := ownStr(f[ownName], "event")
		if err != nil {
			return facts{}, err
		}
		if name == "" {
			return facts{}, missing("event")
		}
		at, err := ownClock(f[ownTime], "timestamp")
		return facts{kind: event.Custom, timestamp: at}, err
	},
}

const (
	ownName = iota
	ownAccount
	ownTime
)
