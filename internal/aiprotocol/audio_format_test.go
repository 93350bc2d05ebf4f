package aiprotocol

import "testing"

func TestFrameSizes(t *testing.T) {
	for encoding, want := range map[string]int{PCM16: 960, ULaw: 160, Opus: 0} {
		if f, ok := FormatOf(encoding); !ok || f.FrameBytes() != want {
			t.Errorf("%s: %d bytes, want %d", encoding, f.FrameBytes(), want)
		}
	}
	if _, ok := FormatOf("g711_alaw"); ok {
		t.Error("there is no such format")
	}
}
