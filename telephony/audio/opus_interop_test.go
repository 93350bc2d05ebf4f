package audio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/thesyncim/gopus/container/ogg"
)

func TestOpusIsWhatOthersDecode(t *testing.T) {
	findTool(t, "opusdec")
	for _, from := range []Format{{ULaw, 8000}, {PCM16, 24000}} {
		t.Run(fmt.Sprint(from), func(t *testing.T) { checkOpusdecDecodes(t, from) })
	}
}

func TestOpusOfOthersIsDecoded(t *testing.T) {
	packets := encodedByFFmpeg(t, findTool(t, "ffmpeg"))
	for _, to := range []Format{{PCM16, 8000}, {PCM16, 24000}, {PCM16, 48000}} {
		transcoder, _ := NewTranscoder(Format{Opus, 48000}, to)
		var heard []int16
		for _, packet := range packets {
			if err := transcoder.Decode(packet); err != nil {
				t.Fatal(err)
			}

			for transcoder.SamplesNeeded() == 0 {
				raw, err := transcoder.EncodeFrame(nil)
				if err != nil {
					t.Fatal(err)
				}
				heard = pcm16Codec{}.appendSamples(heard, raw)
			}
		}

		amplitude, snr := fitTone(heard[len(heard)/2:len(heard)*3/4], 440, to.Rate)
		if amplitude < 8000 || amplitude > 10000 || snr < 20 {
			t.Errorf("at %d Hz: amplitude %.0f, signal to noise %.1f dB", to.Rate, amplitude, snr)
		}
	}
}

// checkOpusdecDecodes puts our packets in a file, has opusdec decode it, and looks for the tone in the result.
func checkOpusdecDecodes(t *testing.T, from Format) {
	dir := t.TempDir()
	transcoder, err := NewTranscoder(from, Format{Opus, 48000})
	if err != nil {
		t.Fatal(err)
	}

	source, _ := NewTranscoder(Format{PCM16, 48000}, from)
	var file bytes.Buffer
	w, err := ogg.NewWriter(&file, 48000, 1)
	if err != nil {
		t.Fatal(err)
	}

	raw, _ := pcm16Codec{}.Encode(nil, tone(440, 48000, 96000, 9000))
	for ; len(raw) >= 1920; raw = raw[1920:] {
		_ = source.Decode(raw[:1920])
		packet, err := source.EncodeFrame(nil)
		if err != nil {
			t.Fatal(err)
		}

		_ = transcoder.Decode(packet)
		packet, err = transcoder.EncodeFrame(nil)
		if err != nil {
			t.Fatal(err)
		}

		if got := (Format{Opus, 48000}).Samples(packet); got != 960 {
			t.Fatalf("a packet of %d samples", got)
		}
		if err := w.WritePacket(packet, 960); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	in, out := filepath.Join(dir, "in.opus"), filepath.Join(dir, "out.wav")
	if err := os.WriteFile(in, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	run(t, "opusdec", "--quiet", "--rate", "48000", "--no-dither", in, out)
	wav, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}

	heard := pcm16Codec{}.appendSamples(nil, wav[44:])
	if len(heard) < 90000 {
		t.Fatalf("opusdec gave %d samples", len(heard))
	}

	amplitude, snr := fitTone(heard[24000:72000], 440, 48000)
	if amplitude < 8000 || amplitude > 10000 || snr < 10 {
		t.Errorf("amplitude %.0f, signal to noise %.1f dB", amplitude, snr)
	}
}

// encodedByFFmpeg returns the packets of two seconds of 440 Hz by libopus, stereo as phones send it.
func encodedByFFmpeg(t *testing.T, ffmpeg string) [][]byte {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.raw"), filepath.Join(dir, "out.opus")
	var raw []byte

	for _, s := range tone(440, 48000, 96000, 9000) {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(s))
	}

	if err := os.WriteFile(in, raw, 0o600); err != nil {
		t.Fatal(err)
	}

	run(t, ffmpeg, "-v", "error", "-f", "s16le", "-ar", "48000", "-ac", "1", "-i", in,
		"-af", "pan=stereo|c0=c0|c1=c0", "-c:a", "libopus", "-b:a", "64k", out)
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	r, err := ogg.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}

	var packets [][]byte
	for {
		packet, _, err := r.ReadPacket()
		if err != nil {
			break
		}
		packets = append(packets, bytes.Clone(packet))
	}

	if len(packets) < 90 {
		t.Fatalf("%d packets of two seconds", len(packets))
	}

	return packets
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// findTool finds a program of Debian's; CI must have it.
func findTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("SKIPPED: %s is not installed", name)
	}
	return path
}
