package rtp

import "testing"

func TestG711KnownValues(t *testing.T) {
	// ITU-T G.711 tables 1a, 1b, 2a, 2b, on 16 bits.
	uLaw := map[byte]int16{0xFF: 0, 0x7F: 0, 0x80: 32124, 0x00: -32124, 0xFE: 8, 0xF0: 120, 0xEF: 132, 0x8F: 16764}
	for b, want := range uLaw {
		if got := DecodeULaw(b); got != want {
			t.Errorf("PCMU %#x is %d, want %d", b, got, want)
		}
	}
	aLaw := map[byte]int16{0xD5: 8, 0x55: -8, 0xAA: 32256, 0x2A: -32256, 0xD4: 24, 0xC5: 264}
	for b, want := range aLaw {
		if got := DecodeALaw(b); got != want {
			t.Errorf("PCMA %#x is %d, want %d", b, got, want)
		}
	}
}

func TestG711ThereAndBack(t *testing.T) {
	for i := range 256 {
		b := byte(i)
		if got := EncodeULaw(DecodeULaw(b)); got != b && b != 0x7F { // two zeros
			t.Errorf("PCMU %#x came back as %#x", b, got)
		}
		if got := EncodeALaw(DecodeALaw(b)); got != b {
			t.Errorf("PCMA %#x came back as %#x", b, got)
		}
	}
	for sample := -32768; sample <= 32767; sample += 7 {
		for name, got := range map[string]int{
			"PCMU": int(DecodeULaw(EncodeULaw(int16(sample)))), "PCMA": int(DecodeALaw(EncodeALaw(int16(sample)))),
		} {
			if off := max(got-sample, sample-got); off > max(max(sample, -sample)/16, 16) {
				t.Errorf("%s of %d is %d", name, sample, got)
			}
		}
	}
}
