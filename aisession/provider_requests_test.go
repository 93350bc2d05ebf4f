package aisession_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/aisession"
)

func TestExtrasOnlyForThoseWhoOptedIn(t *testing.T) {
	const audioMs = 20_000
	// behave sends audio, and its events when the caller has heard the beginning. It waits for the
	// answers if there must be some.
	behave := func(played <-chan struct{}, answered bool) func(*fakeConnection) {
		return func(v *fakeConnection) {
			_ = v.sendAudio(make([]byte, 8*audioMs))
			select {
			case <-played:
			case <-v.done:
			}

			for _, m := range []struct {
				text   string
				answer string // before the next message
			}{
				{`{"event":"mark","mark":{"name":"late"}}`, ""}, {`{"event":"dtmf","dtmf":{"digit":"7"}}`, ""},
				{`{"event":"clear","clear":{}}`, "cleared"}, {`{"event":"mark","mark":{"name":"now"}}`, `"now"`},
				{`{"event":"transfer","transfer":{"destination":"1002"}}`, "transfer"},
				{`{"event":"hangup","hangup":{"reason":"USER_BUSY"}}`, ""},
			} {
				_ = v.send(m.text)
				come := func(h receivedMessage) bool {
					return h.event == m.answer ||
						strings.Contains(string(h.body), m.answer)
				}

				for answered && m.answer != "" && !slices.ContainsFunc(v.received(), come) {
					select {
					case <-v.done:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			}
		}
	}

	hears := func(t *testing.T, run *runningSession) {
		until(t, "200 ms of audio", func() bool { return bytes.Count(run.phone.playedAudio(), []byte{0}) >= 1600 })
	}
	t.Run("not opted in", func(t *testing.T) {
		t.Parallel()
		played := make(chan struct{})
		p := startProvider(t, 160, behave(played, false))
		h := startService(t, aisession.DefaultSettings(), p)
		run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
		v := p.nextConnection()
		hears(t, run)
		close(played)
		until(t, "messages to be ignored", func() bool {
			return h.metric("trunkline_aisession_ignored_messages_total", "problem", "unknown_event") == 6
		})
		v.waitFor(t, "media", 20) // the session continues
		run.end(t, "")

		for _, m := range v.waitHangup(t, "NORMAL_CLEARING") {
			if m.event != "start" && m.event != "media" && m.event != "hangup" {
				t.Errorf("got %s", m.event)
			}
		}

		if len(run.phone.pressed) > 0 || len(run.phone.transfers) > 0 {
			t.Error("the provider had its way with the call")
		}
		if got := h.metric("trunkline_aisession_ignored_messages_total", "problem", "unknown_event"); got != 6 {
			t.Errorf("%g messages ignored", got)
		}
	})

	t.Run("opted in", func(t *testing.T) {
		t.Parallel()
		played := make(chan struct{})
		p := startProvider(t, 160, behave(played, true))
		p.extensions = true
		h := startService(t, aisession.DefaultSettings(), p)
		with := configOf(p, "g711_ulaw")
		with.Extensions = true
		session := request(with, ulaw)
		run := h.start(session)
		run.phone.mu.Lock()
		run.phone.refuse = true
		run.phone.mu.Unlock()

		v := p.nextConnection()
		hears(t, run)
		close(played)

		if e := run.wait(t); e.Reason != aisession.ProviderHungUp || e.Cause != "USER_BUSY" {
			t.Errorf("ended: %+v", e)
		}

		var messages []string
		for _, m := range v.waitHangup(t, "USER_BUSY") {
			if m.event == "media" {
				continue
			}

			messages = append(messages, m.event)
			switch m.event {
			case "cleared":
				var c struct{ PlayedMs, DroppedMs int }
				if err := json.Unmarshal(m.body, &c); err != nil || c.PlayedMs < 150 || c.PlayedMs >= audioMs ||
					c.PlayedMs+c.DroppedMs != audioMs {
					t.Errorf("cleared: %s", m.body)
				}
			case "transfer":
				if string(m.body) != `{"destination":"1002","error":"nobody is there"}` {
					t.Errorf("transfer: %s", m.body)
				}
			case "mark":
				var mark struct {
					Name     string
					PlayedMs int
				}
				if err := json.Unmarshal(m.body, &mark); err != nil || mark.PlayedMs < 150 || mark.PlayedMs >= audioMs {
					t.Errorf("mark: %s", m.body)
				}
			}
		}

		if fmt.Sprint(messages) != "[start mark cleared mark transfer hangup]" {
			t.Errorf("the messages are %v", messages)
		}
		if string(run.phone.pressed) != "7" || fmt.Sprint(run.phone.transfers) != "[1002]" {
			t.Errorf("pressed %q, transferred to %v", run.phone.pressed, run.phone.transfers)
		}
	})

	t.Run("a transfer that works ends the session", func(t *testing.T) {
		t.Parallel()
		p := startProvider(t, 160,
			func(v *fakeConnection) { _ = v.send(`{"event":"transfer","transfer":{"destination":"1002"}}`) })
		h := startService(t, aisession.DefaultSettings(), p)
		with := configOf(p, "g711_ulaw")
		with.Extensions = true
		run := h.start(request(with, ulaw))
		if e := run.wait(t); e.Reason != aisession.Transferred {
			t.Errorf("ended: %+v", e)
		}

		p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
		if len(run.phone.endings) != 0 {
			t.Error("a call that was handed on was released")
		}
	})
}
