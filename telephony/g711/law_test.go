package g711

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"testing"
)

func laws() map[string]*Law { return map[string]*Law{"mulaw": ULaw(), "alaw": ALaw()} }

func TestKnownValues(t *testing.T) {
	// ITU-T G.711 tables 1a, 1b, 2a, 2b, on 16 bits.
	for name, values := range map[string]map[byte]int16{
		"mulaw": {0xFF: 0, 0x7F: 0, 0x80: 32124, 0x00: -32124, 0xFE: 8, 0xF0: 120, 0xEF: 132, 0x8F: 16764},
		"alaw":  {0xD5: 8, 0x55: -8, 0xAA: 32256, 0x2A: -32256, 0xD4: 24, 0xC5: 264},
	} {
		for code, want := range values {
			if got := laws()[name].DecodeSample(code); got != want {
				t.Errorf("%s: %#x is %d, want %d", name, code, got, want)
			}
		}
	}
}

// TestSamplesAgreeWithFFmpeg compares every code's sample.
func TestSamplesAgreeWithFFmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("ffmpeg is not installed")
		}
		t.Skip("SKIPPED: ffmpeg is not installed")
	}

	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}

	for name, law := range laws() {
		cmd := exec.Command(ffmpeg, "-v", "error", "-f", name, "-ar", "8000", "-i", "-", "-f", "s16le", "-")
		cmd.Stdin = bytes.NewReader(codes)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("ffmpeg: %v", err)
		}

		for i := range codes {
			if want := int16(binary.LittleEndian.Uint16(out[2*i:])); law.DecodeSample(byte(i)) != want {
				t.Errorf("%s: code %#x is %d, want %d", name, i, law.DecodeSample(byte(i)), want)
			}
		}
	}
}

func TestCodesComeBackAsThemselves(t *testing.T) {
	for name, law := range laws() {
		for code := range 256 {
			negativeZero := name == "mulaw" && code == 0x7f
			if again := law.EncodeSample(law.DecodeSample(byte(code))); again != byte(code) && !negativeZero {
				t.Errorf("%s: %#x came back as %#x", name, code, again)
			}
		}
	}
}

func TestTheCodeIsANearOne(t *testing.T) {
	for name, law := range laws() {
		for s := -32768; s <= 32767; s++ {
			got := int(law.DecodeSample(law.EncodeSample(int16(s))))
			magnitude := max(s, -s)
			if miss := max(got-s, s-got); miss > max(magnitude/24, 16) && magnitude < 32100 {
				t.Fatalf("%s: %d became %d", name, s, got)
			}
		}
	}
}

func TestPacketsAreTheirCodes(t *testing.T) {
	pcm := []int16{-32768, -1000, -1, 0, 1, 1000, 32767}
	for name, law := range laws() {
		packet, err := law.Encode([]byte{7}, pcm)
		if err != nil || packet[0] != 7 || len(packet) != len(pcm)+1 {
			t.Fatalf("%s: %v, %v", name, packet, err)
		}

		for i, s := range law.Decode(nil, packet[1:]) {
			if packet[i+1] != law.EncodeSample(pcm[i]) || s != law.DecodeSample(packet[i+1]) {
				t.Errorf("%s: sample %d is %#x and %d", name, pcm[i], packet[i+1], s)
			}
		}
	}
}

// A conversion is by way of the sample, stays near it, and changes nothing any
// more when a call is converted again and again.
func TestConversionBetweenTheLaws(t *testing.T) {
	for code := range 256 {
		there := ULawToALaw()[code]
		if want := ALaw().EncodeSample(ULaw().DecodeSample(byte(code))); there != want {
			t.Errorf("mu-law %#x is A-law %#x, want %#x", code, there, want)
		}

		before, after := int(ULaw().DecodeSample(byte(code))), int(ALaw().DecodeSample(there))
		if miss := max(before-after, after-before); miss > max(max(before, -before)/24, 16) {
			t.Errorf("mu-law %#x, %d, becomes %d", code, before, after)
		}

		again := ULawToALaw()[ALawToULaw()[there]]
		if third := ULawToALaw()[ALawToULaw()[again]]; third != again {
			t.Errorf("mu-law %#x changes with each conversion: %#x, %#x, %#x", code, there, again, third)
		}
	}
}

func BenchmarkULaw(b *testing.B) {
	pcm := make([]int16, 160)
	for i := range pcm {
		pcm[i] = int16(i*113 - 9000)
	}

	packet := make([]byte, 0, 160)
	b.ReportAllocs()
	for b.Loop() {
		packet, _ = ULaw().Encode(packet[:0], pcm)
		pcm = ULaw().Decode(pcm[:0], packet)
	}
}
