package audio

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"trunkline/telephony/g711"
)

// wavFile makes a WAV file of a kind (1: PCM, 6 and 7: G.711).
func wavFile(kind, channels, rate int, pcm []int16) []byte {
	var samples []byte
	for _, s := range pcm {
		switch kind {
		case 1:
			samples = binary.LittleEndian.AppendUint16(samples, uint16(s))
		case 6:
			samples = append(samples, g711.ALaw().EncodeSample(s))
		case 7:
			samples = append(samples, g711.ULaw().EncodeSample(s))
		}
	}

	size := len(samples) / len(pcm)
	h := append([]byte("RIFF\x00\x00\x00\x00WAVEjunk\x03\x00\x00\x00abc\x00fmt "), 18, 0, 0, 0)
	h = binary.LittleEndian.AppendUint16(h, uint16(kind))
	h = binary.LittleEndian.AppendUint16(h, uint16(channels))
	h = binary.LittleEndian.AppendUint32(h, uint32(rate))
	h = binary.LittleEndian.AppendUint32(h, uint32(rate*channels*size))
	h = binary.LittleEndian.AppendUint16(h, uint16(channels*size))
	h = binary.LittleEndian.AppendUint16(h, uint16(8*size))
	h = append(h, 0, 0)
	h = append(h, "data"...)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(samples)))

	return append(h, samples...)
}

// FuzzWAV checks that no file makes the reader fail in another way than by an error.
func FuzzWAV(f *testing.F) {
	f.Add(wavFile(1, 2, 8000, beeps(8000, 2, 960)))
	f.Add(wavFile(7, 1, 8000, beeps(8000, 1, 960)))
	f.Add([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x02\x00\x00\x00\x01\x00data"))

	f.Fuzz(func(t *testing.T, file []byte) {
		wav, err := NewWAV(bytes.NewReader(file))
		if err != nil {
			return
		}

		opus, err := NewOggOpus(wav)
		if err != nil {
			return
		}

		if _, err := io.Copy(io.Discard, opus); err != nil {
			t.Error(err)
		}
	})
}

func TestWAVFilesThatAreNot(t *testing.T) {
	whole := wavFile(1, 2, 8000, beeps(8000, 2, 960))
	for name, file := range map[string][]byte{
		"empty": nil, "text": []byte("hello, this is no audio at all"), "cut off": whole[:40],
		"24 bits":        bytes.Replace(whole, []byte{16, 0, 0, 0, 'd'}, []byte{24, 0, 0, 0, 'd'}, 1),
		"three channels": wavFile(1, 3, 8000, beeps(8000, 1, 960)),
	} {
		if _, err := NewWAV(bytes.NewReader(file)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}

	odd, err := NewWAV(bytes.NewReader(wavFile(1, 1, 11025, beeps(11025, 1, 960))))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := NewOggOpus(odd); err == nil {
		t.Error("11,025 Hz: no error")
	}
}
