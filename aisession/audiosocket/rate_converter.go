package audiosocket

import "trunkline/telephony/audio"

// rateConverter converts audio between a message kind's rate and the session's. Asterisk gives the rate with
// each message and expects audio at the newest one.
type rateConverter struct {
	kind                  byte              // of the messages at Asterisk's rate
	toSession, toAsterisk *audio.Transcoder // toSession is used by the reader, toAsterisk by the session's ticks
	sessionFrame          []byte            // reused by the reader
	asteriskFrame         []byte            // reused by the session's ticks
}

// receiveAudio passes received audio to the session. A change of rate also changes the rate of playback.
func (c *call) receiveAudio(m message) {
	r := c.converter.Load()
	switch {
	case m.kind == c.kind:
		if r != nil {
			c.converter.Store(nil)
		}
		c.splitter.Write(m.payload)
		return
	case r == nil || r.kind != m.kind:
		r = newRateConverter(m.kind, c.kind)
		if r == nil {
			return
		}
		c.converter.Store(r)
	}

	for piece, n := m.payload, 0; len(piece) > 0; piece = piece[n:] {
		// A Transcoder accepts about one frame at a time.
		n = min(len(piece), audio.Format{Encoding: audio.PCM16, Rate: rates[m.kind]}.FrameBytes())
		if r.toSession.Decode(piece[:n]) != nil {
			return
		}

		for r.toSession.SamplesNeeded() == 0 {
			frame, err := r.toSession.EncodeFrame(r.sessionFrame[:0])
			if err != nil {
				return
			}
			c.splitter.Write(frame)
			r.sessionFrame = frame
		}
	}
}

// newRateConverter returns the converter between a kind and that of the session's audio, or nil if there is no
// resampler for it; every kind in rates has one.
func newRateConverter(kind, sessionKind byte) *rateConverter {
	theirs, ours := audio.Format{Encoding: audio.PCM16, Rate: rates[kind]}, audio.Format{Encoding: audio.PCM16,
		Rate: rates[sessionKind]}
	in, err := audio.NewTranscoder(theirs, ours)
	if err != nil {
		return nil
	}

	out, err := audio.NewTranscoder(ours, theirs)
	if err != nil {
		return nil
	}

	return &rateConverter{kind: kind, toSession: in, toAsterisk: out}
}

// resample converts a frame of the session to Asterisk's rate.
func (r *rateConverter) resample(frame []byte) []byte {
	if r.toAsterisk.Decode(frame) != nil {
		return nil
	}
	if r.toAsterisk.SamplesNeeded() > 0 { // happens once, due to the resampler's delay
		r.toAsterisk.AddSilence(r.toAsterisk.SamplesNeeded())
	}

	out, err := r.toAsterisk.EncodeFrame(r.asteriskFrame[:0])
	if err != nil {
		return nil
	}

	r.asteriskFrame = out
	return out
}
