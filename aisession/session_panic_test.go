package aisession_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
)

// faultyCall panics on the first frame that it is to play.
type faultyCall struct{ *phone }

func (faultyCall) Play([]byte) { panic("the call failed") }

// Sessions share the goroutines of their ticks: a panic in one ends that session only.
func TestAPanicEndsOneSession(t *testing.T) {
	p := startProvider(t, 160, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	good := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	bad, err := h.Open(context.Background(), request(configOf(p, "g711_ulaw"), ulaw))
	if err != nil {
		t.Fatal(err)
	}

	if e := bad.Run(context.Background(), faultyCall{newPhone(t, ulaw)}); e.Reason != aisession.InternalError {
		t.Errorf("ended with %+v", e)
	}
	if n := h.metric("trunkline_recovered_panics_total", "where", "ai_session"); n < 1 {
		t.Errorf("%v panics are counted", n)
	}

	select {
	case <-good.Ended():
		t.Error("the other session ended too")
	default:
	}

	if e := good.end(t, "NORMAL_CLEARING"); e.Reason != aisession.CallerHungUp {
		t.Errorf("the other ended with %+v", e)
	}
}

// faultyEnding panics when the call is released.
type faultyEnding struct{ *phone }

func (faultyEnding) Release(aisession.Ending) { panic("the release failed") }

// A panic in a call's ingress, or in the call's own methods, ends that session, and its place is free.
func TestAPanicOfAnIngressEndsItsSession(t *testing.T) {
	p := startProvider(t, 160, echoAudio)
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.MaxSessions = 1 }), p)
	for range 2 {
		s, err := h.Open(context.Background(), request(configOf(p, "g711_ulaw"), ulaw))
		if err != nil {
			t.Fatal(err)
		}

		s.RunRecovered(func() { panic("a reader failed") })
		if e := s.Run(context.Background(), faultyEnding{newPhone(t, ulaw)}); e.Reason != aisession.InternalError {
			t.Errorf("ended with %+v", e)
		}
	}

	for _, where := range []string{"ai_ingress", "ai_session"} {
		if n := h.metric("trunkline_recovered_panics_total", "where", where); n != 2 {
			t.Errorf("%s: %v panics are counted", where, n)
		}
	}
}

// faultySessions panics when an AudioSocket call comes, once.
type faultySessions struct {
	*testEnv
	faulty bool
}

func (f *faultySessions) TakeAnnouncement(ctx context.Context,
	id uuid.UUID) (aiprovider.Announcement, aiprovider.Provider, error) {
	if !f.faulty {
		f.faulty = true
		panic("the look-up failed")
	}
	return f.testEnv.TakeAnnouncement(ctx, id)
}

func TestAPanicEndsOneAudioSocket(t *testing.T) {
	p := startProvider(t, 960, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	announceCall(t, h, configOf(p, "pcm16"))
	first := dialAudioSocketOf(t, &faultySessions{testEnv: h})
	id := uuid.MustParse(callUUID)
	_ = first.send(0x01, id[:])

	if _, _, err := first.read(); err == nil {
		t.Error("the first connection was not closed")
	}

	second := first.again()
	_ = second.send(0x01, id[:])
	p.nextConnection().waitFor(t, "start", 1)
}
