package audio

import (
	"bytes"
	"io"
	"math"
	"os/exec"
	"testing"

	"github.com/thesyncim/gopus"
	"github.com/thesyncim/gopus/container/ogg"
)

// beeps is half a second of 440 Hz on the first channel, and then of 1 kHz on the second, and so on.
func beeps(rate, channels, samples int) (pcm []int16) {
	for i := range samples {
		turn := i / (rate / 2) % 2
		for channel := range channels {
			hertz := []float64{440, 1000}[channel]
			level := 0.0
			if channels == 1 || channel == turn {
				level = 8000 * math.Sin(2*math.Pi*hertz*float64(i)/float64(rate))
			}
			pcm = append(pcm, int16(level))
		}
	}

	return pcm
}

// A WAV file keeps its length and each channel its sound where it was, in a fraction of its size.
func TestOggOpusKeepsChannelsAndPositions(t *testing.T) {
	for _, c := range []struct{ kind, channels, rate, samples int }{
		{1, 2, 8000, 8000*3 + 7}, {7, 1, 8000, 8000 * 3}, {6, 2, 8000, 8000*3 + 479}, {1, 1, 16000, 16000*2 + 1},
		{1, 2, 48000, 48000 * 2},
	} {
		wav := wavFile(c.kind, c.channels, c.rate, beeps(c.rate, c.channels, c.samples))
		file := encodeOgg(t, wav)
		if len(file) > len(wav)/2 {
			t.Errorf("%+v: %d bytes of %d", c, len(file), len(wav))
		}

		pcm := decodeOgg(t, file, c.channels)
		if got, want := len(pcm)/c.channels, c.samples*48000/c.rate; got != want {
			t.Errorf("%+v: %d samples, want %d", c, got, want)
		}

		checkBeeps(t, pcm, c.channels)
	}
}

// Debian's opusdec reads the file as the library that wrote it does.
func TestOggOpusIsReadByOpusdec(t *testing.T) {
	opusdec, err := exec.LookPath("opusdec")
	if err != nil {
		t.Skip("opusdec is not installed")
	}

	file := encodeOgg(t, wavFile(1, 2, 8000, beeps(8000, 2, 24007)))
	decode := exec.Command(opusdec, "--quiet", "--force-wav", "--rate", "48000", "-", "-")
	decode.Stdin = bytes.NewReader(file)
	decoded, err := decode.Output()
	if err != nil {
		t.Fatal(err)
	}

	w, err := NewWAV(bytes.NewReader(decoded))
	if err != nil {
		t.Fatal(err)
	}

	pcm := make([]int16, 48000*2*4)
	n, err := w.Read(pcm)
	most := 2 * (24007*6 + 48*oggFrameMillis) // it does not cut the silence after the last sample
	if err != nil || n < 2*24007*6 || n > most {
		t.Errorf("%d samples, %v", n, err)
	}

	checkBeeps(t, pcm[:n], 2)
}

func encodeOgg(t *testing.T, file []byte) []byte {
	t.Helper()
	wav, err := NewWAV(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}

	opus, err := NewOggOpus(wav)
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := io.ReadAll(opus)
	if err != nil {
		t.Fatal(err)
	}

	return encoded
}

func decodeOgg(t *testing.T, file []byte, channels int) (pcm []int16) {
	t.Helper()
	r, err := ogg.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}

	decoder, err := gopus.NewDecoder(gopus.DefaultDecoderConfig(48000, channels))
	if err != nil {
		t.Fatal(err)
	}

	frame := make([]int16, 5760*channels)
	var end uint64
	for {
		packet, granule, err := r.ReadPacket()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}

		n, err := decoder.DecodeInt16(packet, frame)
		if err != nil {
			t.Fatal(err)
		}

		pcm, end = append(pcm, frame[:n*channels]...), granule
	}

	return pcm[int(r.Header.PreSkip)*channels : int(end)*channels]
}

// checkBeeps checks that each channel sounds in its half seconds, but for 20 ms at their edges, and hardly in others.
func checkBeeps(t *testing.T, pcm []int16, channels int) {
	t.Helper()
	for channel := range channels {
		for from := 0; (from+24000)*channels <= len(pcm); from += 24000 {
			loud := 0.0
			for i := from + 960; i < from+24000-960; i++ {
				s := float64(pcm[i*channels+channel])
				loud += s * s
			}

			loud = math.Sqrt(loud / (24000 - 1920))
			sounds := channels == 1 || channel == from/24000%2
			if sounds && (loud < 4000 || loud > 8000) || !sounds && loud > 400 {
				t.Errorf("channel %d at %d ms has a level of %.0f", channel, from/48, loud)
			}
		}
	}
}

// BenchmarkOggOpus encodes a minute of a recorded call.
func BenchmarkOggOpus(b *testing.B) {
	file := wavFile(1, 2, 8000, beeps(8000, 2, 60*8000))
	for b.Loop() {
		wav, err := NewWAV(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}

		opus, err := NewOggOpus(wav)
		if err != nil {
			b.Fatal(err)
		}

		if _, err := io.Copy(io.Discard, opus); err != nil {
			b.Fatal(err)
		}
	}

	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/60*100, "%core/second-of-call")
}
