package audio

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"testing"
)

// TestG711AgreesWithFFmpeg compares every code's sample.
func TestG711AgreesWithFFmpeg(t *testing.T) {
	ffmpeg := tool(t, "ffmpeg")
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	for name, law := range map[string]*companding{"mulaw": muLaw, "alaw": aLaw} {
		cmd := exec.Command(ffmpeg, "-v", "error", "-f", name, "-ar", "8000", "-i", "-", "-f", "s16le", "-")
		cmd.Stdin = bytes.NewReader(codes)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("ffmpeg: %v", err)
		}
		for i := range codes {
			if want := int16(binary.LittleEndian.Uint16(out[2*i:])); law.linear[i] != want {
				t.Errorf("%s: code %#x is %d, want %d", name, i, law.linear[i], want)
			}
		}
	}
}

func TestG711CodesComeBackAsThemselves(t *testing.T) {
	for name, law := range map[string]*companding{"mu-law": muLaw, "A-law": aLaw} {
		for code := range 256 {
			again, _ := law.Encode(nil, []int16{law.linear[code]})
			if negativeZero := name == "mu-law" && code == 0x7f; again[0] != byte(code) && !negativeZero {
				t.Errorf("%s: %#x came back as %#x", name, code, again[0])
			}
		}
	}
}

func TestG711ChoosesANearCode(t *testing.T) {
	for name, law := range map[string]*companding{"mu-law": muLaw, "A-law": aLaw} {
		for s := -32768; s <= 32767; s++ {
			code, _ := law.Encode(nil, []int16{int16(s)})
			got := int(law.linear[code[0]])
			magnitude := max(s, -s)
			if miss := max(got-s, s-got); miss > max(magnitude/24, 16) && magnitude < 32100 {
				t.Fatalf("%s: %d became %d", name, s, got)
			}
		}
	}
}

func BenchmarkULaw(b *testing.B) {
	pcm := tone(440, 8000, 160, 9000)
	packet := make([]byte, 0, 160)
	b.ReportAllocs()
	for b.Loop() {
		packet, _ = muLaw.Encode(packet[:0], pcm)
		pcm = muLaw.decode(pcm[:0], packet)
	}
}
