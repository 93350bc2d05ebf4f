package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Kazoo spells a key Dash-Case on its message bus and snake_case in documents,
// webhooks and on the Blackhole socket; here either is read.
var eventKeys = bothSpellings(
	"Event-Category", "Event-Name", "Account-ID", "Queue-ID", "Custom-Channel-Vars",
	"Timestamp", "Event-Timestamp", "Event-Unix-Timestamp", "Now",
	"Entered-Timestamp", "Miss-Timestamp", "Abandon-Timestamp", "Handled-Timestamp", "Processed-Timestamp",
	"Join-Queue-ID", "Hook-Event", "Call-State",
	"Action", "Data", "Name", "Args",
)

const (
	kzCategory = iota
	kzName
	kzAccount
	kzQueue
	kzChannelVars
	kzTime
	kzEventTime
	kzUnixTime
	kzNow
	kzEntered
	kzMissed
	kzAbandoned
	kzHandled
	kzProcessed
	kzJoinQueue
	kzHook
	kzCallState
	kzAction
	kzData
	kzEnvelopeName
	kzArgs
)

// channelVarKeys are the members read from Custom-Channel-Vars.
var channelVarKeys = bothSpellings("Account-ID", "Queue-ID")

const (
	varAccount = iota
	varQueue
)

func bothSpellings(names ...string) jsonscan.Keys {
	keys := jsonscan.KeysOf(names...)
	for i, name := range names {
		keys[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = i
	}
	return keys
}

// openEnvelope looks into a Blackhole envelope, {action: "event", name, data: {…}}
// or the older {name, args: {…}}. The envelope's name stays where the event
// inside has none.
func openEnvelope(keys jsonscan.Keys, f *format.Fields) error {
	inside := f[kzArgs]
	if f[kzAction].Is("event") {
		inside = f[kzData]
	}
	if inside.Kind() != jsonscan.Object || f[kzCategory] != nil {
		return nil
	}
	return keys.Scan(inside, f[:])
}

func account(f *format.Fields) (string, error) {
	return namedAccount(f[kzAccount], f[kzChannelVars])
}

// namedAccount returns the account that a Kazoo record names, at its top level or
// in its channel variables.
func namedAccount(own, channelVars jsonscan.Value) (string, error) {
	account, err := format.AccountText(own, "Account-ID")
	if account != "" || err != nil {
		return account, err
	}
	var vars [2]jsonscan.Value
	format.Within(channelVars, channelVarKeys, vars[:])
	return format.AccountText(vars[varAccount], "Custom-Channel-Vars.Account-ID")
}

// readEvent reads what all Kazoo formats have in common.
func readEvent(f *format.Fields, eventType event.Type) format.Event {
	e := format.Event{
		Type:      eventType,
		Timestamp: format.FirstClock(f[kzTime], f[kzEventTime], f[kzUnixTime], f[kzNow]),
		QueueID:   format.FirstText(f[kzQueue], f[kzJoinQueue]),
	}
	if e.QueueID == "" {
		var vars [2]jsonscan.Value
		format.Within(f[kzChannelVars], channelVarKeys, vars[:])
		e.QueueID = format.Text(vars[varQueue])
	}
	return e
}

// eventName returns the event's own name, else its envelope's.
func eventName(f *format.Fields) string { return format.FirstText(f[kzName], f[kzEnvelopeName]) }
