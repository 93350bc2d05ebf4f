package aisession_test

import (
	"math"
	"testing"
	"time"

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
