package fanout

import (
	"fmt"
	"runtime"
	"testing"

	"trunkline/event"
	"trunkline/identity"
)

func TestSubscribersOfOneTokenShareItsFilter(t *testing.T) {
	var known sharedPrincipals
	of := func(id, root string) (*identity.Principal, *filter) {
		return &identity.Principal{TokenID: id}, &filter{root: root, types: event.EveryType, names: event.EveryName}
	}
	p1, f1 := known.share(of("a", "x"))
	p2, f2 := known.share(of("a", "x"))
	if p1 != p2 || f1 != f2 {
		t.Error("the same token is not shared")
	}
	if _, f := known.share(of("a", "y")); f == f1 {
		t.Error("a filter that has changed was shared")
	}
	if _, f := known.share(of("b", "x")); f == f1 {
		t.Error("two tokens share a filter")
	}

	if _, f := known.share(&identity.Principal{TokenID: "a"}, nil); f != nil {
		t.Error("a token that may see nothing was given a filter")
	}

	runtime.KeepAlive(p1)
}

func TestTokensThatNobodyHoldsAreForgotten(t *testing.T) {
	var known sharedPrincipals
	for i := range 10_000 {
		known.share(&identity.Principal{TokenID: fmt.Sprint(i)}, &filter{root: "x"})
		if i%100 == 0 {
			runtime.GC()
		}
	}

	if n := len(known.byToken); n > 1000 {
		t.Errorf("%d tokens are remembered", n)
	}
}
