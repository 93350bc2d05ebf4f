package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// FreeSWITCH events are one flat object of headers, all strings, as the event
// socket's JSON has them. Values may be URL-encoded (text/event-plain).
var eventKeys = jsonscan.KeysOf(
	"Event-Name", "Event-Subclass", "Event-Date-Timestamp",
	"Account-ID", "variable_account_id", "variable_ecallmgr_Account-ID",
	"CC-Action", "CC-Queue", "CC-Agent-Status", "variable_cc_queue",
)

// plainEncoding is the event socket's own encoding.
var plainEncoding = map[string]format.Encoding{"text/event-plain": {Split: splitPlain, Copies: true}}

const (
	fsName = iota
	fsSubclass
	fsTime // µs
	fsAccount
	fsVariableAccount
	fsKazooAccount
	fsAction
	fsQueue
	fsAgentStatus
	fsVariableQueue
)

// account returns the account that an event names. accountcode is a billing label
// and is not read.
func account(f *format.Fields) (string, error) {
	for _, slot := range [...]int{fsAccount, fsVariableAccount, fsKazooAccount} {
		account, err := format.AccountText(f[slot], "Account-ID")
		if account != "" || err != nil {
			return unescape(account), err
		}
	}
	return "", nil
}

// readEvent reads an event of either format: a feed that names the wrong one of
// the two still gets the right type.
func readEvent(f *format.Fields) (format.Event, error) {
	e := format.Event{
		Type:      eventType(f),
		Timestamp: format.FirstClock(f[fsTime]),
		QueueID:   decoded(f[fsQueue]),
	}
	if e.QueueID == "" {
		e.QueueID = decoded(f[fsVariableQueue])
	}
	return e, nil
}

func eventType(f *format.Fields) event.Type {
	if action := decoded(f[fsAction]); action != "" {
		return callcenterType(action, decoded(f[fsAgentStatus]))
	}
	if f[fsName].Is("CUSTOM") {
		return subclassType(decoded(f[fsSubclass]))
	}
	return event.Custom
}
