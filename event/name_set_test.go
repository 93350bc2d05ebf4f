package event

import (
	"strings"
	"testing"
)

func TestNamesAreSelectedExactlyOrByClass(t *testing.T) {
	for _, n := range Names() {
		one, ok := NamesMatching(string(n))
		if !ok || one != NameBit([]byte(n)) || one&(one-1) != 0 {
			t.Errorf("%s selects %b, its header is %b", n, one, NameBit([]byte(n)))
		}

		class, _, hasClass := strings.Cut(string(n), ".")
		all, ok := NamesMatching(class + ".*")
		if ok != hasClass || ok && all&one == 0 {
			if n != NameOther {
				t.Errorf("%s.* selects %b without %s", class, all, n)
			}
		}
	}

	if call, _ := NamesMatching("call.*"); call&NameBit([]byte(NameQueueCallEntered)) != 0 ||
		call&NameBit([]byte(NameCallEnded)) == 0 {
		t.Errorf("call.* selects %b", call)
	}

	for _, bad := range []string{"", "*", ".*", "call", "call.", "calls.*", "Call.*", "call.answered.*"} {
		if set, ok := NamesMatching(bad); ok {
			t.Errorf("%q selects %b", bad, set)
		}
	}

	if NamesOf(nil) != EveryName || NamesOf([]string{"other"}) != NameBit(nil) ||
		NameBit([]byte("new.name")) != NameBit(nil) {
		t.Error("no filter, no header and an unknown name")
	}
}
