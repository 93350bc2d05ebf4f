package aisession_test

import (
	"testing"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
)

func TestCallsGoOnWithoutRedisAndKafka(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.MaxPerAccount = 1 }), p)
	h.redis.Close()
	h.events.mu.Lock()
	h.events.fail = true
	h.events.mu.Unlock()

	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	p.nextConnection().waitFor(t, "media", 5)
	run.end(t, "")
	until(t, "the events to be counted as lost", func() bool {
		return h.metric("trunkline_aisession_dropped_total", "kind", "event") == 2
	})

	if err := h.Announce(t.Context(),
		aiprovider.Announcement{UUID: callUUID}); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("announcing: %v", err)
	}
	if _, _, err := h.TakeAnnouncement(t.Context(), mustUUID(t, callUUID)); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("looking up: %v", err)
	}
}
