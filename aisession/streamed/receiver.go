package streamed

import "trunkline/telephony/audio"

// Session receives audio from a Receiver; *aisession.Session implements it.
type Session interface {
	ReceiveAudio(timestamp uint32, payload []byte)
}

// Receiver passes a stream of 16-bit samples to a session. Pieces may have any size and may end within
// a sample.
type Receiver struct {
	session   Session
	frame     int // frame size in bytes
	timestamp uint32
	half      []byte // the first byte of an incomplete sample
}

// NewReceiver returns a receiver of samples with a rate in Hz.
func NewReceiver(session Session, rate int) *Receiver {
	return &Receiver{session: session, frame: audio.Format{Encoding: audio.PCM16, Rate: rate}.FrameBytes(), half: make([]byte, 0, 2)}
}

// Write adds a piece of the stream.
func (r *Receiver) Write(piece []byte) {
	if len(r.half) == 1 && len(piece) > 0 {
		r.half = append(r.half, piece[0])
		r.put(r.half)
		r.half, piece = r.half[:0], piece[1:]
	}
	if len(piece)%2 == 1 {
		r.half = append(r.half, piece[len(piece)-1])
		piece = piece[:len(piece)-1]
	}
	for len(piece) > 0 {
		n := min(len(piece), r.frame)
		r.put(piece[:n])
		piece = piece[n:]
	}
}

func (r *Receiver) put(samples []byte) {
	r.session.ReceiveAudio(r.timestamp, samples)
	r.timestamp += uint32(len(samples) / 2)
}
