package event

import "testing"

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
