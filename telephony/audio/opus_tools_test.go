package audio

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/thesyncim/gopus/container/ogg"
)

// decodedByOpusTools puts our packets in a file that opusdec decodes.
func decodedByOpusTools(t *testing.T, from Format, _ string) {
	dir := t.TempDir()
	path, err := NewTranscoder(from, Format{Opus, 48000})
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

		_ = path.Decode(packet)
		packet, err = path.EncodeFrame(nil)
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

// encodedByFFmpeg is two seconds of 440 Hz by libopus, stereo as phones send it.
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
