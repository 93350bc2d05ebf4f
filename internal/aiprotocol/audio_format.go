package aiprotocol

import "time"

// Audio encodings, as in media.audioFormat and mediaFormat.encoding.
const (
	PCM16 = "pcm16"     // signed, 16 bits, little-endian, mono
	ULaw  = "g711_ulaw" // ITU-T G.711
	Opus  = "opus"      // one packet per media message
)

// FrameDuration is the duration of the audio in one media message of the service.
const FrameDuration = 20 * time.Millisecond

// Format is the audio format of a session.
type Format struct {
	Encoding   string
	SampleRate int // Hz
}

// Formats returns all formats. Each encoding has one sample rate.
func Formats() []Format {
	return []Format{{PCM16, 24000}, {ULaw, 8000}, {Opus, 48000}}
}

// FormatOf returns the format with an encoding.
func FormatOf(encoding string) (Format, bool) {
	for _, f := range Formats() {
		if f.Encoding == encoding {
			return f, true
		}
	}
	return Format{}, false
}

// FrameBytes returns the bytes of FrameDuration of audio, or 0 if packets vary in size.
func (f Format) FrameBytes() int {
	samples := f.SampleRate * int(FrameDuration/time.Millisecond) / 1000
	switch f.Encoding {
	case PCM16:
		return 2 * samples
	case ULaw:
		return samples
	}
	return 0
}
