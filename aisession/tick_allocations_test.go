package aisession

import (
	"testing"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/wsframe"
	"trunkline/telephony/audio"
)

func TestNothingIsAllocatedForATick(t *testing.T) {
	for _, encoding := range []string{"g711_ulaw", "pcm16"} {
		s := newIdleService(t)
		session := newIdleSession(t, s, encoding)
		session.call = silent{}
		l := idleConnection(session)
		message := aiprotocol.AppendMedia(nil, make([]byte, session.request.Provider.Format.FrameBytes()))
		wire := serverFrame(wsframe.Text, true, message)

		packet, n, now := make([]byte, 160), uint32(0), time.Now()
		packet[0] = 1
		run := func() {
			session.ReceiveAudio(n*160, packet)
			n++
			l.handleBytes(wire[:n%9+1], now) // in two pieces
			l.handleBytes(wire[n%9+1:], now)
			now = now.Add(audio.FrameDuration)
			session.tick(now, nil)
		}

		for range 10 {
			run()
		}

		if got := testing.AllocsPerRun(200, run); got != 0 {
			t.Errorf("%s: %g allocations for a frame each way", encoding, got)
		}
	}
}
