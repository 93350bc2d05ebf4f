package streamed

import "trunkline/telephony/audio"

// Session receives audio from a FrameSplitter; *aisession.Session implements it.
type Session interface {
	// ReceiveAudio adds samples, which it copies. timestamp counts the samples before them, of one channel.
	ReceiveAudio(timestamp uint32, payload []byte)
}

// FrameSplitter splits a stream of samples into frames and passes them to a session.
// Pieces may have any size and may end within a sample.
type FrameSplitter struct {
	session     Session
	frameBytes  int // frame size in bytes, of all channels
	sampleBytes int // of one instant, in all channels
	timestamp   uint32
	part        []byte // the beginning of an incomplete instant
}

// NewFrameSplitter returns a splitter of samples in a format other than opus, in which those of several channels
// alternate.
func NewFrameSplitter(session Session, format audio.Format, channels int) *FrameSplitter {
	bytes := format.FrameBytes() * channels
	size := bytes / audio.FrameSamples(format.Rate)
	return &FrameSplitter{session: session, frameBytes: bytes, sampleBytes: size, part: make([]byte, 0, size)}
}

// Write adds a piece of the stream.
func (f *FrameSplitter) Write(piece []byte) {
	if len(f.part) > 0 {
		n := min(len(piece), f.sampleBytes-len(f.part))
		f.part, piece = append(f.part, piece[:n]...), piece[n:]
		if len(f.part) < f.sampleBytes {
			return
		}

		f.addSamples(f.part)
		f.part = f.part[:0]
	}

	whole := len(piece) - len(piece)%f.sampleBytes
	f.part = append(f.part, piece[whole:]...)
	for piece = piece[:whole]; len(piece) > 0; {
		n := min(len(piece), f.frameBytes)
		f.addSamples(piece[:n])
		piece = piece[n:]
	}
}

func (f *FrameSplitter) addSamples(samples []byte) {
	f.session.ReceiveAudio(f.timestamp, samples)
	f.timestamp += uint32(len(samples) / f.sampleBytes)
}
