package pbx

import (
	"math"

	"trunkline/telephony/g711"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// The ring tone (ITU-T E.180): 425 Hz for one second, then four seconds of silence.
const (
	toneHz           = 425
	toneLevel        = 4000 // amplitude, of 32767
	toneFramesOn     = 50   // frames of 20 ms
	toneFramesPeriod = 250
	frameSize        = 160
	// toneFrames frames repeat without a phase step: 425 Hz has 17 periods in 320 samples.
	toneFrames = 2
)

// tones has the ring tone in both laws of G.711.
type tones struct{ uLaw, aLaw tone }

type tone struct {
	frames  [toneFrames][frameSize]byte
	silence [frameSize]byte
}

func newTones() tones {
	return tones{uLaw: newTone(g711.ULaw()), aLaw: newTone(g711.ALaw())}
}

func newTone(law *g711.Law) (t tone) {
	for i := range t.silence {
		t.silence[i] = law.EncodeSample(0)
		for frame := range t.frames {
			sample := float64(frame*frameSize + i)
			t.frames[frame][i] = law.EncodeSample(int16(toneLevel * math.Sin(2*math.Pi*toneHz*sample/8000)))
		}
	}
	return t
}

// source returns the tone for a codec. For opus it is silence, which still opens the path through NAT.
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
	n := r.frame % toneFramesPeriod
	r.frame++
	if n < toneFramesOn {
		return copy(buffer, r.tone.frames[n%toneFrames][:])
	}
	return copy(buffer, r.tone.silence[:])
}

type opusSilence struct{}

// Next implements rtp.Source with a frame of 20 ms that decodes to silence (RFC 6716).
func (opusSilence) Next(buffer []byte) int { return copy(buffer, []byte{0xF8, 0xFF, 0xFE}) }
