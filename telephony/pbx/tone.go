package pbx

import (
	"math"

	"trunkline/telephony/g711"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// The ring tone (ITU-T E.180): 425 Hz for a second, then four of silence.
const (
	toneHz     = 425
	toneLevel  = 4000 // of 32767
	toneOn     = 50   // frames of 20 ms
	tonePeriod = 250
	frameSize  = 160
	// toneFrames repeat without a step: 425 Hz is 17 periods in 320 samples.
	toneFrames = 2
)

// tones has the ring tone in the laws of G.711.
type tones struct{ uLaw, aLaw tone }

type tone struct {
	sound   [toneFrames][frameSize]byte
	silence [frameSize]byte
}

func newTones() tones {
	return tones{uLaw: newTone(g711.ULaw()), aLaw: newTone(g711.ALaw())}
}

func newTone(law *g711.Law) (t tone) {
	for i := range t.silence {
		t.silence[i] = law.Code(0)
		for frame := range t.sound {
			at := float64(frame*frameSize + i)
			t.sound[frame][i] = law.Code(int16(toneLevel * math.Sin(2*math.Pi*toneHz*at/8000)))
		}
	}
	return t
}

// source is the tone for a codec. Opus phones hear silence, which opens their
// way through NAT all the same.
func (t *tones) source(codec sip.Codec) rtp.Source {
	switch {
	case codec.Same(sip.PCMU()):
		return &toneSource{tone: &t.uLaw}
	case codec.Same(sip.PCMA()):
		return &toneSource{tone: &t.aLaw}
	}
	return opusSilence{}
}

type toneSource struct {
	tone  *tone
	frame int
}

// Next implements rtp.Source.
func (r *toneSource) Next(buffer []byte) int {
	n := r.frame % tonePeriod
	r.frame++
	if n < toneOn {
		return copy(buffer, r.tone.sound[n%toneFrames][:])
	}
	return copy(buffer, r.tone.silence[:])
}

type opusSilence struct{}

// Next is rtp.Source's: a frame of 20 ms that decodes to silence (RFC 6716).
func (opusSilence) Next(buffer []byte) int { return copy(buffer, []byte{0xF8, 0xFF, 0xFE}) }
