package aisession_test

import (
	"testing"

	"trunkline/aisession"
)

func TestEventsTellOfASession(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, aisession.DefaultSettings(), p)
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	p.nextConnection().waitFor(t, "media", 1)
	run.end(t, "")
	until(t, "two events", func() bool { return len(h.events.all()) == 2 })
	sent := h.events.all()

	for i, state := range []string{"started", "ended"} {
		if sent[i]["event"] != "ai.session" || sent[i]["state"] != state || sent[i]["provider_id"] != "prov1" ||
			sent[i]["call_id"] != "call-1" || sent[i]["session_id"] != run.ID() {
			t.Errorf("event %d: %v", i, sent[i])
		}
	}

	if sent[1]["reason"] != "caller_hangup" || sent[1]["duration"].(float64) <= 0 {
		t.Errorf("ended: %v", sent[1])
	}
	if h.metric("trunkline_aisession_active", "ingress", "sip") != 0 ||
		h.metric("trunkline_aisession_ended_total", "reason", "caller_hangup") != 1 {
		t.Error("the metrics do not agree")
	}
}
