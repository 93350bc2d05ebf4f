package pbx

import (
	"context"
	"sync"

	"trunkline/event"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// newRecording returns the recording of the call whose leg has the record, which names the recording. The
// near side is the caller. If the account wants it, both sides hear an announcement first.
func (c *call) newRecording(ctx context.Context, b *bridge, leg *event.CDR, far *callSide) localcall.Recording {
	recorded := localcall.RecordedCall{
		AccountID: c.accountID, CallID: leg.CallID, InteractionID: c.interactionID,
		OriginationCallID: c.originationID(),
		Direction:         leg.Direction, Port: b.near.port, OtherIDs: []string{c.id}, CallerNumber: leg.From,
		CalleeNumber: leg.To,
	}
	recording := c.driver.config.Recorder.Record(recorded)
	pcm := recording.Announcement()
	if pcm != nil {
		b.announce(ctx, far, pcm)
	}

	return recording
}

// beginRecording begins the recording of the connected sides, and keeps it for new offers.
func (b *bridge) beginRecording(r localcall.Recording) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recording = r
	r.Begin(b.near.agreedMedia)
}

// announce plays samples to both sides, or to the near one if far is nil.
func (b *bridge) announce(ctx context.Context, far *callSide, pcm []int16) {
	ports, formats := b.announcedTo(far)
	var heard sync.WaitGroup
	for i, port := range ports {
		heard.Go(func() { localcall.Announce(ctx, port, formats[i], pcm) })
	}
	heard.Wait()
}

// announcedTo ends the ring tone and returns the ports and formats of the sides.
func (b *bridge) announcedTo(far *callSide) (ports []*rtp.Port, formats []sip.NegotiatedCodec) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopToneLocked()
	ports, formats = append(ports, b.near.port), append(formats, b.near.agreedMedia.Codecs[0])
	if far != nil {
		ports, formats = append(ports, far.port), append(formats, far.agreedMedia.Codecs[0])
	}
	return ports, formats
}

// tellRecording tells the recording, if there is one, that the near side has new media. The caller holds mu.
func (b *bridge) tellRecording(agreed sip.NegotiatedMedia) {
	if b.recording != nil {
		b.recording.SetMedia(agreed)
	}
}
