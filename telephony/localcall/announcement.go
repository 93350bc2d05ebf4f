package localcall

import (
	"context"
	"encoding/binary"
	"time"

	"trunkline/telephony/audio"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// AnnouncementRate is the sample rate of announcements, in Hz.
const AnnouncementRate = 8000

// Announce sends samples at AnnouncementRate to a port's peer in the negotiated codec, and returns when all are sent
// or ctx ends. A codec that is none of sip.AllCodecs hears nothing.
func Announce(ctx context.Context, port *rtp.Port, codec sip.NegotiatedCodec, pcm []int16) {
	transcoder, err := audio.NewTranscoder(audio.Format{Encoding: audio.PCM16, Rate: AnnouncementRate},
		FormatOf(codec.Codec))
	if err != nil {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(pcm))*time.Second/AnnouncementRate)
	defer cancel()

	stream := rtp.NewStream(port,
		rtp.Format{PayloadType: codec.SendType, Clock: codec.Clock, Frame: audio.FrameDuration})
	stream.Run(ctx, &sampleSource{pcm: pcm, transcoder: transcoder})
}

// sampleSource implements rtp.Source.
type sampleSource struct {
	pcm        []int16 // that is not sent yet
	transcoder *audio.Transcoder
	bytes      []byte // buffer: the next samples as the transcoder takes them
}

// Next implements rtp.Source. After the last sample it is silence.
func (a *sampleSource) Next(buffer []byte) int {
	for a.transcoder.SamplesNeeded() > 0 {
		part := a.pcm[:min(len(a.pcm), a.transcoder.SamplesNeeded())]
		a.pcm = a.pcm[len(part):]
		if len(part) == 0 {
			a.transcoder.AddSilence(a.transcoder.SamplesNeeded())
			continue
		}

		a.bytes = a.bytes[:0]
		for _, sample := range part {
			a.bytes = binary.LittleEndian.AppendUint16(a.bytes, uint16(sample))
		}

		if err := a.transcoder.Decode(a.bytes); err != nil {
			return 0
		}
	}

	packet, err := a.transcoder.EncodeFrame(buffer[:0])
	if err != nil {
		return 0
	}

	return copy(buffer, packet)
}
