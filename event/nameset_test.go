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

func TestSetOf(t *testing.T) {
	every, _, _ := SetOf(nil)
	if every&Own != 0 || every&ClassOf(Custom, "svc.cc", "") == 0 {
		t.Error("without event_types: every type, not our own events")
	}

	custom, _, _ := SetOf([]string{string(Custom)})
	if custom&ClassOf(Custom, FormatOwn, "") == 0 || custom&ClassOf(QueueCall, "svc.cc", "") != 0 {
		t.Error("AGENT_CUSTOM_EVENT by name admits our own events and nothing else")
	}
	if every&OwnPerformance != 0 || custom&ClassOf(AgentPerformance, FormatPerformance, "") != 0 ||
		every&ClassOf(AgentPerformance, "generic", "") == 0 {
		t.Error("without AGENT_PERFORMANCE by name: no figures of ours, but those of a source")
	}

	performance, _, _ := SetOf([]string{string(AgentPerformance)})
	if performance&ClassOf(AgentPerformance, FormatPerformance, "") == 0 ||
		performance&ClassOf(Custom, FormatOwn, "") != 0 {
		t.Error("AGENT_PERFORMANCE by name admits our figures and no other event of ours")
	}
	if _, unknown, ok := SetOf([]string{string(QueueCall), "nope"}); ok || unknown != "nope" {
		t.Error("an unknown type is named")
	}
}
