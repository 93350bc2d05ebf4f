package aicheck

import (
	"math"
	"testing"

	"trunkline/internal/aiprotocol"
)

// The tone has its frequency and loudness, and its phase is continuous from one frame to the
// next.
func TestTheTone(t *testing.T) {
	pcm, _ := aiprotocol.FormatOf(aiprotocol.PCM16)
	var samples []float64
	for n := range 50 {
		f := toneFrame(pcm, n)
		if len(f) != pcm.FrameBytes() {
			t.Fatalf("a frame of %d bytes", len(f))
		}

		for i := 0; i < len(f); i += 2 {
			samples = append(samples, float64(int16(uint16(f[i])|uint16(f[i+1])<<8)))
		}
	}

	crossings, loudest := 0, 0.0
	for i := 1; i < len(samples); i++ {
		if samples[i-1] < 0 && samples[i] >= 0 {
			crossings++
		}
		loudest = max(loudest, math.Abs(samples[i]))
	}

	if math.Abs(float64(crossings-toneHertz)) > 1 || math.Abs(loudest-toneLevel) > 2 {
		t.Errorf("%d Hz, %v loud", crossings, loudest)
	}
}

// The decoded values of these G.711 bytes, and the ends of the range.
func TestULaw(t *testing.T) {
	for sample, want := range map[int16]byte{0: 0xff, 32767: 0x80, -32768: 0x00, 7932: 0xa0, 8316: 0x9f, -8316: 0x1f,
		132: 0xef, -1: 0x7f} {
		if got := uLaw(sample); got != want {
			t.Errorf("%d: %#x, want %#x", sample, got, want)
		}
	}
}
