package normalizer

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// FreeSWITCH events are one flat object of headers, all strings, as the event
// socket's JSON has them. Values may be URL-encoded (text/event-plain).
var freeswitchKeys = jsonscan.KeysOf(
	"Event-Name", "Event-Subclass", "Event-Date-Timestamp",
	"Account-ID", "variable_account_id", "variable_ecallmgr_Account-ID",
	"CC-Action", "CC-Queue", "CC-Agent-Status", "variable_cc_queue",
)

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

// freeswitchAccount never reads accountcode: that is a billing label.
func freeswitchAccount(f *fields) (string, error) {
	for _, slot := range [...]int{fsAccount, fsVariableAccount, fsKazooAccount} {
		account, err := named(f[slot], "Account-ID")
		if account != "" || err != nil {
			return unescape(account), err
		}
	}
	return "", nil
}

// freeswitchFacts is the same for both formats: a feed that names the wrong one
// of the two still gets the right type.
func freeswitchFacts(f *fields) (facts, error) {
	what := facts{
		kind:      freeswitchType(f),
		timestamp: firstClock(f[fsTime]),
		queue:     decoded(f[fsQueue]),
	}
	if what.queue == "" {
		what.queue = decoded(f[fsVariableQueue])
	}
	return what, nil
}

func freeswitchType(f *fields) event.Type {
	if action := decoded(f[fsAction]); action != "" {
		return callcenterType(action, decoded(f[fsAgentStatus]))
	}
	if f[fsName].Is("CUSTOM") {
		return subclassType(decoded(f[fsSubclass]))
	}
	return event.Custom
}
