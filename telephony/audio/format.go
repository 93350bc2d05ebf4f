package audio

import (
	"fmt"
	"time"
)

// FrameDuration is how much audio a frame holds, everywhere.
const FrameDuration = 20 * time.Millisecond

// framesPerSecond follows from FrameDuration.
const framesPerSecond = int(time.Second / FrameDuration)

// Encoding is how samples are written.
type Encoding string

// The encodings; three have the specification's names.
const (
	PCM16 Encoding = "pcm16" // 16-bit little-endian
	ULaw  Encoding = "g711_ulaw"
	ALaw  Encoding = "g711_alaw"
	Opus  Encoding = "opus"
)

// Format is an encoding and its clock: samples each second, for opus always
// 48000, whatever is inside (RFC 7587).
type Format struct {
	Encoding Encoding
	Rate     int
}

// Validate says whether this package can read and write the format.
func (f Format) Validate() error {
	switch f.Encoding {
	case PCM16:
		if _, known := tapsFor(f.Rate, 8000); known {
			return nil
		}
	case ULaw, ALaw:
		if f.Rate == 8000 {
			return nil
		}
	case Opus:
		if f.Rate == opusRate {
			return nil
		}
	}
	return fmt.Errorf("audio: no format %s at %d Hz", f.Encoding, f.Rate)
}

// FrameSamples is how many samples a frame has at a rate.
func FrameSamples(rate int) int { return rate / framesPerSecond }

// FrameBytes is the size of a frame; 0 for opus, whose packets vary.
func (f Format) FrameBytes() int { return FrameSamples(f.Rate) * f.sampleBytes() }

// sampleBytes is 0 for opus.
func (f Format) sampleBytes() int {
	switch f.Encoding {
	case PCM16:
		return 2
	case Opus:
		return 0
	}
	return 1
}

// Samples is how many samples of the format's clock a packet holds; 0 when it
// is no packet of the format.
func (f Format) Samples(packet []byte) int {
	if f.Encoding == Opus {
		return opusSamples(packet)
	}
	return len(packet) / f.sampleBytes()
}

// Duration is how long samples of the format's clock last.
func (f Format) Duration(samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(f.Rate)
}
