package aisession_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"trunkline/aisession"
	"trunkline/aisession/sipcall"
	"trunkline/config/aiprovider"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// countingRecorder is a recorder that counts the packets of one call by direction.
type countingRecorder struct {
	mu             sync.Mutex
	call           localcall.RecordedCall
	received, sent int
	ended          int
	announcement   []int16
}

func (h *countingRecorder) PrepareRecording(string) {}

func (h *countingRecorder) Record(call localcall.RecordedCall) localcall.Recording {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call = call
	return h
}

func (h *countingRecorder) Announcement() []int16 { return h.announcement }

func (h *countingRecorder) Begin(media sip.NegotiatedMedia) {
	if len(media.Codecs) == 1 && media.Codecs[0].Same(sip.PCMU()) {
		h.call.Port.AddTap(h)
	}
}

func (h *countingRecorder) SetMedia(sip.NegotiatedMedia) {}

func (h *countingRecorder) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
}

func (h *countingRecorder) Received(*rtp.Packet) { h.mu.Lock(); h.received++; h.mu.Unlock() }
func (h *countingRecorder) Sent(*rtp.Packet)     { h.mu.Lock(); h.sent++; h.mu.Unlock() }

func (h *countingRecorder) heard(least int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.received >= least && h.sent >= least
}

// The caller's voice comes in at the call's port, the provider's goes out.
func TestAnAISessionIsRecorded(t *testing.T) {
	h := &countingRecorder{announcement: make([]int16, 800)}
	p := startProvider(t, 160, echoAudio)
	e := startService(t, aisession.DefaultSettings(), p)
	e.providers = map[string]aiprovider.Provider{"prov1": configOf(p, "g711_ulaw")}

	server := startSIP(t, 23400, func(ports *rtp.Ports) sip.Handler {
		return sipcall.New(sipcall.Deps{
			Sessions: e.Service, Providers: envProviders{e}, Ports: ports,
			MayCall: func(string, string) bool { return true },
			Log:     slog.New(slog.DiscardHandler), Admission: callLimits{}, Recorder: h,
		})
	})

	phone, err := startSIP(t, 23500, nil).call(t, server, "ai-prov1", sip.PCMU())
	if err != nil {
		t.Fatal(err)
	}

	ctx, quiet := context.WithCancel(t.Context())
	talking := make(chan struct{})
	go func() {
		defer close(talking)
		phone.talk(ctx, ulaw)
	}()

	until(t, "both voices", func() bool { return h.heard(25) })
	quiet()
	<-talking
	phone.leg.Hangup(sip.NormalClearing)
	until(t, "the end of the recording", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.ended == 1 })

	if h.call.AccountID != e.providers["prov1"].AccountID || h.call.CallID != phone.leg.CallID() {
		t.Errorf("%+v", h.call)
	}
}
