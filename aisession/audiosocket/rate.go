package audiosocket

import "trunkline/telephony/audio"

// rate converts audio between a message kind's rate and the session's. Asterisk gives the rate with
// each message and expects audio at the newest one.
type rate struct {
	kind     byte
	in, out  *audio.Path // in is used by the reader, out by the session's ticks
	received []byte
	toPlayed []byte
}

// receiveAudio passes received audio to the session. A change of rate also changes the rate of playback.
func (c *call) receiveAudio(m message) {
	r := c.changedRate.Load()
	switch {
	case m.kind == c.kind:
		if r != nil {
			c.changedRate.Store(nil)
		}
		c.splitter.Write(m.payload)
		return
	case r == nil || r.kind != m.kind:
		if r = newRate(m.kind, c.kind); r == nil {
			return
		}
		c.changedRate.Store(r)
	}
	for piece, n := m.payload, 0; len(piece) > 0; piece = piece[n:] {
		// A Path accepts about one frame at a time.
		n = min(len(piece), audio.Format{Encoding: audio.PCM16, Rate: rates[m.kind]}.FrameBytes())
		if r.in.Push(piece[:n]) != nil {
			return
		}
		for r.in.Wants() == 0 {
			frame, err := r.in.Frame(r.received[:0])
			if err != nil {
				return
			}
			c.splitter.Write(frame)
			r.received = frame
		}
	}
}

// newRate returns the converter of a kind, or nil if there is no resampler for it; every kind in rates
// has one.
func newRate(kind, session byte) *rate {
	theirs, ours := audio.Format{Encoding: audio.PCM16, Rate: rates[kind]}, audio.Format{Encoding: audio.PCM16, Rate: rates[session]}
	in, err := audio.NewPath(theirs, ours)
	if err != nil {
		return nil
	}
	out, err := audio.NewPath(ours, theirs)
	if err != nil {
		return nil
	}
	return &rate{kind: kind, in: in, out: out}
}

// played converts a frame of the session to Asterisk's rate.
func (r *rate) played(frame []byte) []byte {
	if r.out.Push(frame) != nil {
		return nil
	}
	if r.out.Wants() > 0 { // happens once, due to the resampler's delay
		r.out.Silence(r.out.Wants())
	}
	out, err := r.out.Frame(r.toPlayed[:0])
	if err != nil {
		return nil
	}
	r.toPlayed = out
	return out
}
