package aiprotocol

import "time"

// Encodings of audio, as media.audioFormat and mediaFormat.encoding have them.
const (
	PCM16 = "pcm16"     // signed, 16 bits, little-endian, mono
	ULaw  = "g711_ulaw" // ITU-T G.711
	Opus  = "opus"      // one packet in each media message
)

// Frame is how much audio one media message of ours holds.
const Frame = 20 * time.Millisecond

// Format is how a session's audio is encoded.
type Format struct {
	Encoding   string
	SampleRate int // Hz
}

// Formats lists every format there is. Each encoding has one sample rate.
func Formats() []Format {
	return []Format{{PCM16, 24000}, {ULaw, 8000}, {Opus, 48000}}
}

// FormatOf is the format with this encoding.
func FormatOf(encoding string) (Format, bool) {
	for _, f := range Formats() {
		if f.Encoding == encoding {
			return f, true
		}
	}
	return Format{}, false
}

// FrameBytes is the size of one Frame, 0 where packets have no fixed size.
func (f Format) FrameBytes() int {
	samples := f.SampleRate * int(Frame/time.Millisecond) / 1000
	switch f.Encoding {
	case PCM16:
		return 2 * samples
	case ULaw:
		return samples
	}
	return 0
}
