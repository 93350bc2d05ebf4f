package aicheck

import (
	"encoding/binary"
	"math"

	"trunkline/internal/aiprotocol"
)

const (
	toneHertz = 440
	toneLevel = 8000 // of 32767: as loud as speech
)

// opusSilence is one 20 ms packet of encoded silence; a tone would need an encoder.
var opusSilence = []byte{0xf8, 0xff, 0xfe}

// toneFrame returns the n-th frame of the tone.
func toneFrame(f aiprotocol.Format, n int) []byte {
	if f.Encoding == aiprotocol.Opus {
		return opusSilence
	}

	samples := f.SampleRate * int(aiprotocol.FrameDuration.Milliseconds()) / 1000
	audio := make([]byte, 0, f.FrameBytes())
	for i := range samples {
		seconds := float64(n*samples+i) / float64(f.SampleRate)
		sample := int16(toneLevel * math.Sin(2*math.Pi*toneHertz*seconds))
		if f.Encoding == aiprotocol.PCM16 {
			audio = binary.LittleEndian.AppendUint16(audio, uint16(sample))
		} else {
			audio = append(audio, uLaw(sample))
		}
	}

	return audio
}

// uLaw encodes one sample (ITU-T G.711).
func uLaw(sample int16) byte {
	const bias, clip = 0x84, 32635
	sign := byte(0)
	magnitude := int(sample)
	if magnitude < 0 {
		sign, magnitude = 0x80, -magnitude
	}

	magnitude = min(magnitude, clip) + bias
	exponent := 7
	for mask := 0x4000; magnitude&mask == 0; mask >>= 1 {
		exponent--
	}

	mantissa := byte(magnitude>>(exponent+3)) & 0x0f
	return ^(sign | byte(exponent)<<4 | mantissa)
}
