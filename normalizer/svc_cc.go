package normalizer

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// svcCC is the specification's own shape of contact-center event. It has no
// clock of its own.
var svcCC = format{
	name: "svc.cc",
	keys: jsonscan.KeysOf("Account-ID", "Type", "Queue-ID"),
	account: func(f *fields) (string, error) {
		return ownStr(f[svcAccount], "Account-ID")
	},
	facts: func(f *fields) (facts, error) {
		name, err := ownStr(f[svcType], "Type")
		if err != nil {
			return facts{}, err
		}
		what := facts{kind: event.Type(name)}
		if !what.kind.Known() {
			what.kind = event.Custom
		}
		what.queue, err = ownStr(f[svcQueue], "Queue-ID")
		return what, err
	},
}

const (
	svcAccount = iota
	svcType
	svcQueue
)
