package aisession_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/telephony/audio"
)

func TestASessionIsStartMediaHangupClose(t *testing.T) {
	for _, encoding := range []string{"pcm16", "g711_ulaw", "opus"} {
		for _, format := range []audio.Format{ulaw, {Encoding: audio.ALaw, Rate: 8000},
			{Encoding: audio.PCM16, Rate: 16000}, opus} {
			t.Run(fmt.Sprintf("%s for a call of %s", encoding, format.Encoding), func(t *testing.T) {
				t.Parallel()
				frame := map[string]int{"pcm16": 960, "g711_ulaw": 160}[encoding]
				p := startProvider(t, frame, nil)
				h := startService(t, aisession.DefaultSettings(), p)
				run := h.start(request(configOf(p, encoding), format))
				v := p.nextConnection()
				least := 30.0

				if encoding == "opus" || format.Encoding == audio.Opus {
					least = 8
				}

				to := audio.Format{Encoding: audio.Encoding(encoding), Rate: configOf(p, encoding).Format.SampleRate}
				hearsTone(t, to, least, v.audio)
				run.ReceiveDTMF('5', 180*time.Millisecond)
				v.waitFor(t, "dtmf", 1)

				if e := run.end(t, "USER_BUSY"); e.Reason != aisession.CallerHungUp || e.ReturnToDialplan {
					t.Errorf("ended: %+v", e)
				}

				messages := v.waitHangup(t, "USER_BUSY")
				want := fmt.Sprintf(
					`{"callId":"call-1","otherLegCallId":"","callerIdNumber":"+4930123456","calleeIdNumber":"ai-prov1","accountId":"demo","mediaFormat":{"encoding":"%s","sampleRate":%d}}`,
					encoding, configOf(p, encoding).Format.SampleRate)
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
			run := h.start(request(configOf(p, encoding), ulaw))
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
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	v := p.nextConnection()
	hearsTone(t, ulaw, 25, func() [][]byte { return packetsOf(run.phone.playedAudio()) })
	run.end(t, "")
	v.waitHangup(t, "NORMAL_CLEARING")

	if h.metric("trunkline_aisession_first_audio_seconds") != 1 {
		t.Error("the time to the first audio was not measured")
	}
}
