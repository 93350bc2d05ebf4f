package pcmsocket

import (
	"trunkline/aisession/streamed"
	"trunkline/telephony/audio"
)

// newSplitter returns the splitter of the caller's audio, or of the voices that a provider hears.
func newSplitter(session *streamed.CallSession, start callStart) *streamed.FrameSplitter {
	if !start.request.Listens {
		return streamed.NewFrameSplitter(session, start.request.Format, 1)
	}
	voices := &voiceSeparator{CallSession: session, format: start.request.Format, voices: start.voices}
	return streamed.NewFrameSplitter(voices, start.request.Format, len(start.voices))
}

// voiceSeparator passes samples that alternate between voices to a session that listens.
type voiceSeparator struct {
	*streamed.CallSession
	format audio.Format
	voices []int // of the channels, as in aisession.Session.ReceiveVoice
	buffer []byte
}

// ReceiveAudio implements streamed.Session.
func (v *voiceSeparator) ReceiveAudio(timestamp uint32, payload []byte) {
	session := v.Session()
	if session == nil {
		return
	}

	size := v.format.FrameBytes() / audio.FrameSamples(v.format.Rate)
	for channel, voice := range v.voices {
		v.buffer = v.buffer[:0]
		for at := channel * size; at < len(payload); at += size * len(v.voices) {
			v.buffer = append(v.buffer, payload[at:at+size]...)
		}
		session.ReceiveVoice(voice, v.format, timestamp, v.buffer)
	}
}
