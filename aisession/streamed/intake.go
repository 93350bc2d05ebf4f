package streamed

import "trunkline/telephony/audio"

// Session is what an Intake feeds; aisession.Session is one.
type Session interface {
	Heard(timestamp uint32, payload []byte)
}

// Intake gives a session a stream of 16-bit samples that comes in pieces of any
// size, a half sample at their ends too.
type Intake struct {
	session   Session
	frame     int // bytes
	timestamp uint32
	half      []byte // the first byte of a sample, if it came alone
}

// NewIntake is for samples at a rate.
func NewIntake(session Session, rate int) *Intake {
	return &Intake{session: session, frame: audio.Format{Encoding: audio.PCM16, Rate: rate}.FrameBytes(), half: make([]byte, 0, 2)}
}

// Write takes a piece.
func (i *Intake) Write(piece []byte) {
	if len(i.half) == 1 && len(piece) > 0 {
		i.half = append(i.half, piece[0])
		i.put(i.half)
		i.half, piece = i.half[:0], piece[1:]
	}
	if len(piece)%2 == 1 {
		i.half = append(i.half, piece[len(piece)-1])
		piece = piece[:len(piece)-1]
	}
	for len(piece) > 0 {
		n := min(len(piece), i.frame)
		i.put(piece[:n])
		piece = piece[n:]
	}
}

func (i *Intake) put(samples []byte) {
	i.session.Heard(i.timestamp, samples)
	i.timestamp += uint32(len(samples) / 2)
}
