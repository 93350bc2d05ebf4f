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

// hearing is a recorder that counts the packets of one call by direction.
type hearing struct {
	mu             sync.Mutex
	call           localcall.RecordedCall
	received, sent int
	ended          int
	announcement   []int16
}

func (h *hearing) PrepareRecording(string) {}

func (h *hearing) Record(call localcall.RecordedCall) localcall.Recording {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call = call
	return h
}

func (h *hearing) Announcement() []int16 { return h.announcement }

func (h *hearing) Begin(media sip.NegotiatedMedia) {
	if len(media.Codecs) == 1 && media.Codecs[0].Same(sip.PCMU()) {
		h.call.Port.AddTap(h)
	}
}

func (h *hearing) SetMedia(sip.NegotiatedMedia) {}

func (h *hearing) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
}

func (h *hearing) Received(*rtp.Packet) { h.mu.Lock(); h.received++; h.mu.Unlock() }
func (h *hearing) Sent(*rtp.Packet)     { h.mu.Lock(); h.sent++; h.mu.Unlock() }

func (h *hearing) heard(least int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.received >= least && h.sent >= least
}

// The caller's voice comes in at the call's port, the provider's goes out.
func TestAnAISessionIsRecorded(t *testing.T) {
	h := &hearing{announcement: make([]int16, 800)}
	p := startProvider(t, 160, echoAudio)
	e := startService(t, aisession.DefaultSettings(), p)
	e.providers = map[string]aiprovider.Provider{"prov1": account(p, "g711_ulaw")}

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
