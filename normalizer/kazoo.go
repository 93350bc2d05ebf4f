package normalizer

import (
	"strings"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// Kazoo spells a key Dash-Case on its message bus and snake_case in documents,
// webhooks and on the Blackhole socket; here either is read.
var kazooKeys = bothSpellings(
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

// kazooVars are what is read of Custom-Channel-Vars.
var kazooVars = bothSpellings("Account-ID", "Queue-ID")

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

// openKazoo looks into a Blackhole envelope, {action: "event", name, data: {…}}
// or the older {name, args: {…}}. The envelope's name stays where the event
// inside has none.
func openKazoo(keys jsonscan.Keys, f *fields) error {
	inside := f[kzArgs]
	if f[kzAction].Is("event") {
		inside = f[kzData]
	}
	if inside.Kind() != jsonscan.Object || f[kzCategory] != nil {
		return nil
	}
	return keys.Scan(inside, f[:])
}

func kazooAccount(f *fields) (string, error) {
	return kazooNamed(f[kzAccount], f[kzChannelVars])
}

// kazooNamed is the account a Kazoo record names: itself, or in its channel
// variables.
func kazooNamed(own, channelVars jsonscan.Value) (string, error) {
	account, err := named(own, "Account-ID")
	if account != "" || err != nil {
		return account, err
	}
	var vars [2]jsonscan.Value
	within(channelVars, kazooVars, vars[:])
	return named(vars[varAccount], "Custom-Channel-Vars.Account-ID")
}

// kazooFacts is what every Kazoo format reads in the same way.
func kazooFacts(f *fields, kind event.Type) facts {
	what := facts{
		kind:      kind,
		timestamp: firstClock(f[kzTime], f[kzEventTime], f[kzUnixTime], f[kzNow]),
		queue:     firstStr(f[kzQueue], f[kzJoinQueue]),
	}
	if what.queue == "" {
		var vars [2]jsonscan.Value
		within(f[kzChannelVars], kazooVars, vars[:])
		what.queue = str(vars[varQueue])
	}
	return what
}

// kazooName is the event's own name, else its envelope's.
func kazooName(f *fields) string { return firstStr(f[kzName], f[kzEnvelopeName]) }
