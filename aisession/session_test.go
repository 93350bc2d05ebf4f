package aisession_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/telephony/audio"
)

// clearest looks for a tone in frames of a format, 100 ms at a time, and gives
// the stretch where it stands out most: its amplitude and how many dB. A busy
// machine may disturb the others.
func clearest(t *testing.T, format audio.Format, packets [][]byte, hz float64) (amplitude, snr float64) {
	t.Helper()
	const window = 4800
	snr = math.Inf(-1)
	for pcm := decoded(t, format, packets); len(pcm) >= window; pcm = pcm[window:] {
		if a, db := fitted(pcm[:window], hz); db > snr {
			amplitude, snr = a, db
		}
	}
	return amplitude, snr
}

// hearsTone waits until a tone of 440 Hz and amplitude 9000 is received without disturbance. A busy
// machine may disturb it for some time.
func hearsTone(t *testing.T, format audio.Format, least float64, sofar func() [][]byte) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		amplitude, snr := clearest(t, format, sofar(), 440)
		if amplitude > 7500 && amplitude < 10500 && snr > least {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the tone: amplitude %.0f, want 9000; signal to noise %.1f dB, want %.0f", amplitude, snr, least)
		}
	}
}

// audio is the audio of media messages.
func (v *fakeConnection) audio() (packets [][]byte) {
	for _, m := range v.received() {
		if m.event == "media" {
			packets = append(packets, m.audio)
		}
	}
	return packets
}

// decoded is packets as samples at 48 kHz.
func decoded(t *testing.T, format audio.Format, packets [][]byte) (pcm []float64) {
	t.Helper()
	path, err := audio.NewTranscoder(format, audio.Format{Encoding: audio.PCM16, Rate: 48000})
	if err != nil {
		t.Fatal(err)
	}

	for _, packet := range packets {
		if err := path.Decode(packet); err != nil {
			t.Fatal(err)
		}

		raw, err := path.EncodeFrame(nil)
		if err != nil {
			t.Fatal(err)
		}

		for ; len(raw) >= 2; raw = raw[2:] {
			pcm = append(pcm, float64(int16(uint16(raw[0])|uint16(raw[1])<<8)))
		}
	}

	return pcm
}

func fitted(pcm []float64, hz float64) (amplitude, snr float64) {
	var sin, cos, rest float64
	for i, s := range pcm {
		sin += s * math.Sin(2*math.Pi*hz*float64(i)/48000)
		cos += s * math.Cos(2*math.Pi*hz*float64(i)/48000)
	}

	n := float64(len(pcm))
	sin, cos = 2*sin/n, 2*cos/n
	for i, s := range pcm {
		phase := 2 * math.Pi * hz * float64(i) / 48000
		d := s - sin*math.Sin(phase) - cos*math.Cos(phase)
		rest += d * d
	}

	amplitude = math.Hypot(sin, cos)
	return amplitude, 10 * math.Log10(amplitude*amplitude/2/(rest/n+1e-9))
}

// packetsOf cuts mu-law into frames.
func packetsOf(sound []byte) (packets [][]byte) {
	for ; len(sound) >= 160; sound = sound[160:] {
		packets = append(packets, sound[:160])
	}
	return packets
}

func TestASessionIsStartMediaHangupClose(t *testing.T) {
	for _, encoding := range []string{"pcm16", "g711_ulaw", "opus"} {
		for _, format := range []audio.Format{ulaw, {Encoding: audio.ALaw, Rate: 8000},
			{Encoding: audio.PCM16, Rate: 16000}, opus} {
			t.Run(fmt.Sprintf("%s for a call of %s", encoding, format.Encoding), func(t *testing.T) {
				t.Parallel()
				frame := map[string]int{"pcm16": 960, "g711_ulaw": 160}[encoding]
				p := startProvider(t, frame, nil)
				h := startService(t, aisession.DefaultSettings(), p)
				run := h.start(request(account(p, encoding), format))
				v := p.nextConnection()
				least := 30.0

				if encoding == "opus" || format.Encoding == audio.Opus {
					least = 8
				}

				to := audio.Format{Encoding: audio.Encoding(encoding), Rate: account(p, encoding).Format.SampleRate}
				hearsTone(t, to, least, v.audio)
				run.ReceiveDTMF('5', 180*time.Millisecond)
				v.waitFor(t, "dtmf", 1)

				if e := run.end(t, "USER_BUSY"); e.Reason != aisession.CallerHungUp || e.ReturnToDialplan {
					t.Errorf("ended: %+v", e)
				}

				messages := v.waitHangup(t, "USER_BUSY")
				want := fmt.Sprintf(
					`{"callId":"call-1","otherLegCallId":"","callerIdNumber":"+4930123456","calleeIdNumber":"ai-prov1","accountId":"demo","mediaFormat":{"encoding":"%s","sampleRate":%d}}`,
					encoding, account(p, encoding).Format.SampleRate)
				if string(messages[0].body) != want {
					t.Errorf("start is %s", messages[0].body)
				}
				if got := v.header.Get("Authorization"); got != "Bearer secret-of-the-account" {
					t.Errorf("Authorization is %q", got)
				}
			})
		}
	}
}

func TestABurstIsPlayedAtItsPace(t *testing.T) {
	const seconds = 2
	for _, encoding := range []string{"pcm16", "g711_ulaw", "opus"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()

			format := audio.Format{Encoding: audio.Encoding(encoding),
				Rate: map[string]int{"pcm16": 24000, "g711_ulaw": 8000, "opus": 48000}[encoding]}
			p := startProvider(t, 0, func(v *fakeConnection) {
				source, _ := audio.NewTranscoder(audio.Format{Encoding: audio.PCM16, Rate: 48000}, format)
				var whole []byte
				raw := make([]byte, 0, 1920)

				for f := range seconds * 50 {
					raw = raw[:0]
					for i := range 960 {
						s := int16(9000 * math.Sin(2*math.Pi*660*float64(f*960+i)/48000))
						raw = append(raw, byte(s), byte(uint16(s)>>8))
					}

					_ = source.Decode(raw)
					packet, _ := source.EncodeFrame(nil)
					if encoding == "opus" {
						_ = v.sendAudio(packet)
					}

					whole = append(whole, packet...)
				}

				if encoding == "opus" {
					return
				}

				for piece := 1; len(whole) > 0; piece = piece*3%1009 + 1 { // any sizes, odd ones too
					n := min(piece, len(whole))
					_ = v.sendAudio(whole[:n])
					whole = whole[n:]
				}
			})

			h := startService(t, aisession.DefaultSettings(), p)
			run := h.start(request(account(p, encoding), ulaw))
			v := p.nextConnection()

			loud := func() (n int) {
				for _, packet := range packetsOf(run.phone.playedAudio()) {
					if bytes.Count(packet, []byte{0xff}) < 80 { // else silence
						n++
					}
				}
				return n
			}

			until(t, "the burst to be played", func() bool { return loud() >= seconds*50-1 })
			played := run.phone.frames()
			until(t, "what follows it", func() bool { return run.phone.frames() > played+20 })
			run.end(t, "")
			v.waitHangup(t, "NORMAL_CLEARING")
			packets := packetsOf(run.phone.playedAudio())
			least := 30.0

			if encoding == "opus" {
				least = 8
			}
			if amplitude, snr := clearest(t, ulaw, packets, 660); amplitude < 7500 || snr < least {
				t.Errorf("amplitude %.0f, signal to noise %.1f dB", amplitude, snr)
			}
			if n := loud(); n > seconds*50+2 {
				t.Errorf("%d frames of the burst were played, want %d", n, seconds*50)
			}
		})
	}
}

func TestAProviderHearsItselfWhenItEchoes(t *testing.T) {
	p := startProvider(t, 160, nil)
	p.behave = func(v *fakeConnection) {
		sent := 0
		for {
			select {
			case <-v.done:
				return
			case <-time.After(5 * time.Millisecond):
			}

			for _, m := range v.received()[min(sent, len(v.received())):] {
				sent++
				if m.event == "media" && v.sendAudio(m.audio) != nil {
					return
				}
			}
		}
	}

	h := startService(t, aisession.DefaultSettings(), p)
	run := h.start(request(account(p, "g711_ulaw"), ulaw))
	v := p.nextConnection()
	hearsTone(t, ulaw, 25, func() [][]byte { return packetsOf(run.phone.playedAudio()) })
	run.end(t, "")
	v.waitHangup(t, "NORMAL_CLEARING")

	if h.metric("trunkline_aisession_first_audio_seconds") != 1 {
		t.Error("the time to the first audio was not measured")
	}
}

func TestEventsTellOfASession(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, aisession.DefaultSettings(), p)
	run := h.start(request(account(p, "g711_ulaw"), ulaw))
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
		run := h.start(request(account(p, "g711_ulaw"), ulaw))
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
		with := account(p, "g711_ulaw")
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

		var said []string
		for _, m := range v.waitHangup(t, "USER_BUSY") {
			if m.event == "media" {
				continue
			}

			said = append(said, m.event)
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

		if fmt.Sprint(said) != "[start mark cleared mark transfer hangup]" {
			t.Errorf("said %v", said)
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
		with := account(p, "g711_ulaw")
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

func TestALongTestOfAProvider(t *testing.T) {
	p := startProvider(t, 160, nil)
	p.behave = func(v *fakeConnection) {
		time.Sleep(100 * time.Millisecond)
		_ = v.sendAudio(make([]byte, 160))
	}

	h := startService(t, aisession.DefaultSettings(), p)
	report, err := h.TestProvider(t.Context(), account(p, "g711_ulaw"))
	if err != nil {
		t.Fatal(err)
	}

	if !report.OK || report.ConnectMS <= 0 || report.Error != "" ||
		fmt.Sprint(report.Events) != "[start media media hangup]" {
		t.Errorf("report: %+v", report)
	}

	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
	if len(h.events.all()) != 0 {
		t.Error("a test was published on the channel")
	}
}
