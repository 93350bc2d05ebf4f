package audio

import (
	"fmt"
	"time"
)

// FrameDuration is the duration of the audio in one frame.
const FrameDuration = 20 * time.Millisecond

const framesPerSecond = int(time.Second / FrameDuration)

// Encoding is the name of a sample encoding.
type Encoding string

// The encodings.
const (
	PCM16 Encoding = "pcm16" // 16-bit little-endian
	ULaw  Encoding = "g711_ulaw"
	ALaw  Encoding = "g711_alaw"
	Opus  Encoding = "opus"
)

// Format is an encoding and its clock rate in Hz. The clock of opus is 48000 for all audio bandwidths
// (RFC 7587).
type Format struct {
	Encoding Encoding
	Rate     int
}

// Validate checks that this package can decode and encode f.
func (f Format) Validate() error {
	switch f.Encoding {
	case PCM16:
		_, known := tapsFor(f.Rate, 8000)
		if known {
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

// FrameSamples returns the number of samples in a frame at a rate in Hz.
func FrameSamples(rate int) int { return rate / framesPerSecond }

// FrameBytes returns the size of a frame in bytes, or 0 for opus, whose packets vary in size.
func (f Format) FrameBytes() int { return FrameSamples(f.Rate) * f.sampleBytes() }

// sampleBytes returns the size of a sample in bytes, or 0 for opus.
func (f Format) sampleBytes() int {
	switch f.Encoding {
	case PCM16:
		return 2
	case Opus:
		return 0
	}
	return 1
}

// Samples returns the duration of a packet in samples of the format's clock, or 0 if the packet is not
// valid in the format.
func (f Format) Samples(packet []byte) int {
	if f.Encoding == Opus {
		return opusSamples(packet)
	}
	return len(packet) / f.sampleBytes()
}

// Duration returns the duration of a number of samples of the format's clock.
func (f Format) Duration(samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(f.Rate)
}

// SamplesIn returns the number of samples of the format's clock in a duration.
func (f Format) SamplesIn(d time.Duration) int { return int(d * time.Duration(f.Rate) / time.Second) }
