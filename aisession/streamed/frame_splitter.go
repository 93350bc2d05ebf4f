package streamed

import "trunkline/telephony/audio"

// Session receives audio from a FrameSplitter; *aisession.Session implements it.
type Session interface {
	ReceiveAudio(timestamp uint32, payload []byte)
}

// FrameSplitter splits a stream of samples into frames and passes them to a session.
// Pieces may have any size and may end within a sample.
type FrameSplitter struct {
	session     Session
	frameBytes  int // frame size in bytes
	sampleBytes int // 1 or 2
	timestamp   uint32
	oddByte     []byte // the first byte of an incomplete sample
}

// NewFrameSplitter returns a splitter of samples in a format other than opus.
func NewFrameSplitter(session Session, format audio.Format) *FrameSplitter {
	bytes := format.FrameBytes()
	return &FrameSplitter{session: session, frameBytes: bytes, sampleBytes: bytes / audio.FrameSamples(format.Rate), oddByte: make([]byte, 0, 2)}
}

// Write adds a piece of the stream.
func (f *FrameSplitter) Write(piece []byte) {
	if len(f.oddByte) == 1 && len(piece) > 0 {
		f.oddByte = append(f.oddByte, piece[0])
		f.addSamples(f.oddByte)
		f.oddByte, piece = f.oddByte[:0], piece[1:]
	}
	if len(piece)%f.sampleBytes == 1 {
		f.oddByte = append(f.oddByte, piece[len(piece)-1])
		piece = piece[:len(piece)-1]
	}
	for len(piece) > 0 {
		n := min(len(piece), f.frameBytes)
		f.addSamples(piece[:n])
		piece = piece[n:]
	}
}

func (f *FrameSplitter) addSamples(samples []byte) {
	f.session.ReceiveAudio(f.timestamp, samples)
	f.timestamp += uint32(len(samples) / f.sampleBytes)
}
