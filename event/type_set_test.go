package event

import "testing"

func TestTypeSetOf(t *testing.T) {
	every, _, _ := TypeSetOf(nil)
	if every&Own != 0 || every&TypeClassOf(Custom, "svc.cc", "") == 0 {
		t.Error("without event_types: every type, not our own events")
	}

	custom, _, _ := TypeSetOf([]string{string(Custom)})
	if custom&TypeClassOf(Custom, FormatOwn, "") == 0 || custom&TypeClassOf(QueueCall, "svc.cc", "") != 0 {
		t.Error("AGENT_CUSTOM_EVENT by name admits our own events and nothing else")
	}
	if every&OwnPerformance != 0 || custom&TypeClassOf(AgentPerformance, FormatPerformance, "") != 0 ||
		every&TypeClassOf(AgentPerformance, "generic", "") == 0 {
		t.Error("without AGENT_PERFORMANCE by name: no figures of ours, but those of a source")
	}

	performance, _, _ := TypeSetOf([]string{string(AgentPerformance)})
	if performance&TypeClassOf(AgentPerformance, FormatPerformance, "") == 0 ||
		performance&TypeClassOf(Custom, FormatOwn, "") != 0 {
		t.Error("AGENT_PERFORMANCE by name admits our figures and no other event of ours")
	}
	if _, unknown, ok := TypeSetOf([]string{string(QueueCall), "nope"}); ok || unknown != "nope" {
		t.Error("an unknown type is named")
	}
}
