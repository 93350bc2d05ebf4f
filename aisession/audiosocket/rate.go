package audiosocket

import "trunkline/telephony/audio"

// rate turns audio of a kind into the session's and back: Asterisk says with
// each message at what rate it is, and what we send is to be of the newest.
type rate struct {
	kind     byte
	in, out  *audio.Path // used by the reader, and by the session's ticks
	heard    []byte
	toPlayed []byte
}

// hear takes audio. One whose rate is another than that of the message before
// changes what is played too.
func (c *call) hear(m message) {
	r := c.other.Load()
	switch {
	case m.kind == c.kind:
		if r != nil {
			c.other.Store(nil)
		}
		c.receiver.Write(m.payload)
		return
	case r == nil || r.kind != m.kind:
		if r = newRate(m.kind, c.kind); r == nil {
			return
		}
		c.other.Store(r)
	}
	for piece, n := m.payload, 0; len(piece) > 0; piece = piece[n:] {
		// A path takes no more than about a frame at once.
		n = min(len(piece), audio.Format{Encoding: audio.PCM16, Rate: rates[m.kind]}.FrameBytes())
		if r.in.Push(piece[:n]) != nil {
			return
		}
		for r.in.Wants() == 0 {
			frame, err := r.in.Frame(r.heard[:0])
			if err != nil {
				return
			}
			c.receiver.Write(frame)
			r.heard = frame
		}
	}
}

// newRate is nil for a rate that cannot be had, of which there is none in rates.
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

// played is a frame of the session's at Asterisk's rate.
func (r *rate) played(frame []byte) []byte {
	if r.out.Push(frame) != nil {
		return nil
	}
	if r.out.Wants() > 0 { // the resampler's delay, once
		r.out.Silence(r.out.Wants())
	}
	out, err := r.out.Frame(r.toPlayed[:0])
	if err != nil {
		return nil
	}
	r.toPlayed = out
	return out
}
