package pbx_test

import (
	"slices"
	"sync"
	"testing"

	"trunkline/event"
	"trunkline/origination/pbx"
	"trunkline/telephony/g711"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// countingRecorder is a recorder that counts what it hears of one call: packets by direction and voice.
type countingRecorder struct {
	mu       sync.Mutex
	prepared []string // accounts
	call     localcall.RecordedCall
	received map[byte]int
	sent     map[byte]int
	media    []sip.NegotiatedMedia
	ended    int
}

func (h *countingRecorder) PrepareRecording(accountID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.prepared = append(h.prepared, accountID)
}

func (h *countingRecorder) Record(call localcall.RecordedCall) localcall.Recording {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call, h.received, h.sent = call, map[byte]int{}, map[byte]int{}
	return h
}

// Announcement is 400 ms of a level that is 0x2B in G.711 µ-law.
func (h *countingRecorder) Announcement() []int16 {
	return slices.Repeat([]int16{g711.ULaw().DecodeSample(0x2B)}, 3200)
}

func (h *countingRecorder) Begin(media sip.NegotiatedMedia) {
	h.SetMedia(media)
	h.call.Port.AddTap(h)
}

func (h *countingRecorder) SetMedia(media sip.NegotiatedMedia) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.media = append(h.media, media)
}

func (h *countingRecorder) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
	h.call.Port.RemoveTap(h)
}

func (h *countingRecorder) Received(p *rtp.Packet) { h.count(h.received, p) }
func (h *countingRecorder) Sent(p *rtp.Packet)     { h.count(h.sent, p) }

func (h *countingRecorder) count(voices map[byte]int, p *rtp.Packet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	voices[p.Payload[0]]++
}

// checkVoices checks that the caller came in, and the callee went out.
func (h *countingRecorder) checkVoices(t *testing.T, caller, callee byte) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.received[caller] < 18 || h.sent[callee] < 18 || h.received[callee] != 0 || h.sent[caller] != 0 {
		t.Errorf("received %v, sent %v", h.received, h.sent)
	}
	if h.ended != 1 || len(h.media) == 0 {
		t.Errorf("ended %d times, media %v", h.ended, h.media)
	}
}

func TestACallBetweenPhonesIsRecorded(t *testing.T) {
	h := &countingRecorder{}
	w := newTestEnv(t, func(c *pbx.Config) { c.Recorder = h }, nil)
	a, b := w.phone("1001"), w.phone("1002")
	alice := a.Dial("1002", a.Media().SDP("sendrecv", 0))
	bob := b.WaitCall()
	bob.WaitAck()
	eventually(t, func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.media) > 0 }) // after the announcement
	a.Media().WaitReceived(0, 0x2B, 15)                                                      // the announcement
	b.Media().WaitReceived(0, 0x2B, 15)
	a.Media().SendPackets(0, 0x11, 20)
	b.Media().SendPackets(0, 0x22, 20)
	b.Media().WaitReceived(0, 0x11, 18)
	a.Media().WaitReceived(0, 0x22, 18)
	bob.Bye()
	alice.WaitBye()
	w.stop()
	h.checkVoices(t, 0x11, 0x22)

	if h.call.AccountID != account || h.call.CallID != alice.CallID || h.call.Direction != "inbound" ||
		h.call.OriginationCallID != "" || !slices.Equal(h.prepared, []string{account}) {
		t.Errorf("%+v, prepared %v", h.call, h.prepared)
	}
}

func TestAClickToCallIsRecorded(t *testing.T) {
	h := &countingRecorder{}
	w := newTestEnv(t, func(c *pbx.Config) { c.Recorder = h }, nil)
	alice, bob := connectClickToCall(w)
	a, b := alice.Phone, bob.Phone
	a.Media().SendPackets(0, 0x11, 20)
	b.Media().SendPackets(0, 0x22, 20)
	b.Media().WaitReceived(0, 0x11, 18)
	a.Media().WaitReceived(0, 0x22, 18)
	bob.Bye()
	alice.WaitBye()
	w.stop()
	h.checkVoices(t, 0x11, 0x22)
	_, _, destination := w.callRecords()
	if h.call.OriginationCallID == "" || len(destination) != 1 || destination[0].CallID != h.call.CallID ||
		!isMarked(destination[0]) {
		t.Errorf("%+v, the destination's leg %+v", h.call, destination)
	}
}

func isMarked(row event.CDR) bool { return row.CustomSIPHeaders != nil }
