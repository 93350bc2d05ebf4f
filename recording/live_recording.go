package recording

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/telephony/audio"
	"trunkline/telephony/g711"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

const (
	writeInterval  = 500 * time.Millisecond // between writes to the journal
	maxPacketDelay = 400 * time.Millisecond // how late a packet may be
	windowSamples  = 2 * liveRate           // samples between what is written and the newest packet
	// maxQueuedBytes bounds the packets between two writes, and those that wait for the journal: 8
	// seconds of both channels in G.711.
	maxQueuedBytes = 128 << 10
	// maxSpareBytes bounds the queue's memory that is kept for the next packets: a second of both channels.
	maxSpareBytes = 16 << 10
)

// The channels of a recording.
const (
	channelCaller = localcall.Caller
	channelCallee = localcall.Callee
	channelCount  = localcall.Voices
)

// liveRecording is one recording of a call in progress. It is the rtp.Tap of the caller's side: the packets
// of its peer are the caller, those sent to it the callee. They are queued as they are, and decoded
// on the live recording's own goroutine, which opens the journal, writes to it and ends with stop. A call is not
// held up while the journal opens: a key may have to be derived from the account's first.
type liveRecording struct {
	beganAt     time.Time
	openJournal func(context.Context) (*journal, error)
	log         *slog.Logger
	writeTurns  chan struct{} // an element for each live recording that writes; capacity: how many may at once
	onKeys      func()        // called on a goroutine of its own when the pause keys are pressed

	opened  chan struct{} // closed when one of the two below is set
	journal *journal
	openErr error

	mu          sync.Mutex
	media       liveMedia
	clocks      [channelCount]rtpClock
	queue       []queuedPacket
	arena       []byte // payloads of queue
	spareArena  []byte
	pausedAt    int64   // samples; notPaused
	pauses      []Pause // that have ended
	endPosition int64   // samples; set before stopping is closed
	failed      bool    // there is no journal: nothing is queued
	pauseKeys   keySequence

	// Only the goroutine uses these.
	writtenSamples int64                              // samples that are in the journal
	window         [channelCount][windowSamples]int16 // decoded and not written, by position modulo windowSamples
	opus           [channelCount]*audio.Transcoder    // nil before the first packet in Opus
	pcm            []int16                            // of one packet; its memory is used again
	bytes          []byte                             // of samples on their way; its memory is used again
	writeErr       error                              // of the first write that failed: nothing more is written

	stopping chan struct{} // closed by stop
}

const notPaused = -1

// queuedPacket is a packet's payload in the arena.
type queuedPacket struct {
	channel  int
	position int64 // of its first sample
	encoding audio.Encoding
	from, to int // in the arena
}

// liveMedia is what the packets contain, with the key presses that are in progress.
type liveMedia struct {
	payloads localcall.Payloads
	dtmf     [localcall.Voices]rtp.DTMFReceiver
}

func newLiveMedia(agreed sip.NegotiatedMedia) liveMedia {
	m := liveMedia{payloads: localcall.PayloadsOf(agreed)}
	for channel := range m.dtmf {
		m.dtmf[channel].Clock = agreed.TelephoneEvent.Clock
	}
	return m
}

// newLiveRecording returns a live recording that begins to hear before its journal opens.
func newLiveRecording(openJournal func(context.Context) (*journal, error), turn chan struct{},
	log *slog.Logger) *liveRecording {
	return &liveRecording{
		beganAt: time.Now(), openJournal: openJournal, writeTurns: turn, log: log,
		onKeys: func() {}, pausedAt: notPaused, opened: make(chan struct{}), stopping: make(chan struct{}),
	}
}

func (t *liveRecording) useMedia(agreed sip.NegotiatedMedia) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.media = newLiveMedia(agreed)
}

// now returns the position of the present.
func (t *liveRecording) now() int64 { return samples(time.Since(t.beganAt)) }

// Received implements rtp.Tap.
func (t *liveRecording) Received(packet *rtp.Packet) { t.receive(channelCaller, packet) }

// Sent implements rtp.Tap.
func (t *liveRecording) Sent(packet *rtp.Packet) { t.receive(channelCallee, packet) }

// receive queues a packet's audio. During a pause it is not even queued.
func (t *liveRecording) receive(channel int, packet *rtp.Packet) {
	t.mu.Lock()
	defer t.mu.Unlock()

	payload := t.media.payloads[channel][packet.PayloadType&0x7F]
	if payload.Keys {
		t.handleKey(channel, packet)
		return
	}
	if payload.Format.Encoding == "" || t.failed {
		return
	}

	at := t.clocks[channel].position(packet.SSRC, packet.Timestamp, uint32(payload.Format.Rate), t.now())
	// A packet from before the pause may come late: it belongs to the recording. Above the bound the rest is lost.
	if t.pausedAt != notPaused && at >= t.pausedAt || len(t.arena)+len(packet.Payload) > maxQueuedBytes {
		return
	}

	from := len(t.arena)
	t.arena = append(t.arena, packet.Payload...)
	t.queue = append(t.queue, queuedPacket{channel: channel, position: at,
		encoding: payload.Format.Encoding, from: from, to: len(t.arena)})
}

// handleKey handles a key press. The caller holds mu.
func (t *liveRecording) handleKey(channel int, packet *rtp.Packet) {
	press, ended := t.media.dtmf[channel].HandleEvent(packet, time.Now())
	if ended && t.pauseKeys.press(channel, press.Digit) {
		// It takes mu, which is held here.
		go t.onKeys()
	}
}

// keySequence recognises the pause keys on each channel.
type keySequence struct {
	sequence    string
	pressedKeys [channelCount]string
}

func (k *keySequence) press(channel int, digit byte) bool {
	if k.sequence == "" {
		return false
	}

	pressed := k.pressedKeys[channel] + string(digit)
	k.pressedKeys[channel] = pressed[max(0, len(pressed)-len(k.sequence)):]
	if k.pressedKeys[channel] != k.sequence {
		return false
	}

	k.pressedKeys[channel] = ""
	return true
}

// beginPause begins a pause; false if there is one.
func (t *liveRecording) beginPause() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pausedAt != notPaused {
		return false
	}
	t.pausedAt = t.now()
	return true
}

// resume ends the pause; false if there is none.
func (t *liveRecording) resume() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.endPause(t.now())
}

// endPause ends a pause at a position. The caller holds mu.
func (t *liveRecording) endPause(at int64) bool {
	if t.pausedAt == notPaused {
		return false
	}
	t.pauses = append(t.pauses, Pause{millis(t.pausedAt), millis(max(at, t.pausedAt))})
	t.pausedAt = notPaused
	return true
}

// run opens the journal and writes to it until stop. It returns the error of opening it.
func (t *liveRecording) run() error {
	if err := t.prepare(); err != nil {
		return err
	}

	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
			t.flushInTurn(func() int64 { return t.now() - samples(maxPacketDelay) })
		case <-t.stopping:
			t.flushInTurn(func() int64 { return t.endPosition })
			if t.journal.sealer != nil {
				t.journal.sealer.key.Root.Wipe()
			}
			return nil
		}
	}
}

// prepare opens the journal. After an error nothing more is queued.
func (t *liveRecording) prepare() error {
	defer close(t.opened)

	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()

	t.journal, t.openErr = t.openJournal(ctx)
	if t.openErr == nil {
		return nil
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	clear(t.arena)
	t.failed, t.queue, t.arena = true, nil, nil
	return t.openErr
}

// awaitOpen waits until the journal is open, and returns the error of opening it.
func (t *liveRecording) awaitOpen(ctx context.Context) error {
	select {
	case <-t.opened:
		return t.openErr
	case <-ctx.Done():
		return fault.Unavailable(ctx.Err(), retryAfter, "the recording has not begun yet")
	}
}

// stop ends the recording. It does not wait for run.
func (t *liveRecording) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped() {
		return
	}
	t.endPosition = t.now()
	// The pause lasts until the end of the recording.
	t.endPause(t.endPosition)
	close(t.stopping)
}

// stopped reports whether stop was called. The caller holds mu.
func (t *liveRecording) stopped() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

// flushInTurn flushes up to a position, which is asked for when it is the live recording's turn. Of 200 calls that
// began at once all would write at once, and the goroutines that relay their packets would wait behind them for 40 ms.
func (t *liveRecording) flushInTurn(until func() int64) {
	t.writeTurns <- struct{}{}
	defer func() { <-t.writeTurns }()
	t.flush(until())
}

// flush decodes the queue and writes everything before a position.
func (t *liveRecording) flush(until int64) {
	t.mu.Lock()
	// Decoded without the lock, for which the call's packets wait.
	queue, arena := t.queue, t.arena
	t.queue, t.arena = nil, t.spareArena[:0]
	pauses, pausedAt := t.pauses, t.pausedAt
	t.mu.Unlock()

	silent := pauseSpans{pauses: pauses, openStart: pausedAt}
	for _, p := range queue {
		t.place(&p, arena[p.from:p.to], silent)
	}

	// Audio that is sealed on the disk does not stay in memory.
	clear(arena)
	t.spareArena = nil
	if cap(arena) <= maxSpareBytes {
		t.spareArena = arena
	}

	for t.writtenSamples < until {
		t.emit(min(until-t.writtenSamples, liveRate))
	}

	t.notePauses(pauses)
}

// pauseSpans has the pauses, whose samples stay 0.
type pauseSpans struct {
	pauses    []Pause // that have ended
	openStart int64   // start of one that has not ended; notPaused
}

// covers reports whether a position is in a pause.
func (s *pauseSpans) covers(at int64) bool {
	if s.openStart != notPaused && at >= s.openStart {
		return true
	}

	// From the newest: packets are of the last second or so.
	for i := len(s.pauses) - 1; i >= 0; i-- {
		p := &s.pauses[i]
		if at >= p.StartMS*liveRate/1000 && at < p.EndMS*liveRate/1000 {
			return true
		}
		if at >= p.EndMS*liveRate/1000 {
			return false
		}
	}

	return false
}

// place decodes a packet into the window, except for the parts in a pause.
func (t *liveRecording) place(p *queuedPacket, payload []byte, silent pauseSpans) {
	pcm, err := t.decode(p, payload)
	if err != nil {
		return // it stays silent, as a lost packet does
	}

	end := p.position + int64(len(pcm))
	for end-t.writtenSamples > windowSamples { // this goroutine was late
		t.emit(min(end-t.writtenSamples-windowSamples, liveRate))
	}

	for i, sample := range pcm {
		at := p.position + int64(i)
		// Later than maxPacketDelay, its place is written.
		if at >= t.writtenSamples && !silent.covers(at) {
			t.window[p.channel][at%windowSamples] = sample
		}
	}

	clear(pcm)
}

func (t *liveRecording) decode(p *queuedPacket, payload []byte) ([]int16, error) {
	t.pcm = t.pcm[:0]
	switch p.encoding {
	case audio.ULaw:
		t.pcm = g711.ULaw().Decode(t.pcm, payload)
		return t.pcm, nil
	case audio.ALaw:
		t.pcm = g711.ALaw().Decode(t.pcm, payload)
		return t.pcm, nil
	}

	if t.opus[p.channel] == nil {
		decoder, err := audio.NewTranscoder(audio.Format{Encoding: audio.Opus, Rate: 48000},
			audio.Format{Encoding: audio.PCM16, Rate: liveRate})
		if err != nil {
			return nil, err
		}
		t.opus[p.channel] = decoder
	}

	decoder := t.opus[p.channel]
	if err := decoder.Decode(payload); err != nil {
		return nil, err
	}

	t.bytes = t.bytes[:0]
	for decoder.SamplesNeeded() == 0 {
		var err error
		t.bytes, err = decoder.EncodeFrame(t.bytes)
		if err != nil {
			return nil, err
		}
	}

	for i := 0; i+1 < len(t.bytes); i += 2 {
		t.pcm = append(t.pcm, int16(uint16(t.bytes[i])|uint16(t.bytes[i+1])<<8))
	}

	clear(t.bytes)
	return t.pcm, nil
}

// emit writes the next n samples of both channels, and makes room in the window.
func (t *liveRecording) emit(n int64) {
	t.bytes = t.bytes[:0]
	for range n {
		i := t.writtenSamples % windowSamples
		for channel := range t.window {
			sample := uint16(t.window[channel][i])
			t.bytes = append(t.bytes, byte(sample), byte(sample>>8))
			t.window[channel][i] = 0
		}

		t.writtenSamples++
	}

	if t.writeErr == nil && n > 0 {
		t.writeErr = t.journal.writeAudio(t.bytes)
		if t.writeErr != nil {
			t.log.Error("recording of a call ended: its file cannot be written",
				"recording_id", t.journal.params.RecordingID, "error", t.writeErr)
		}
	}

	clear(t.bytes)
}

// notePauses writes the pauses that have ended since the last call.
func (t *liveRecording) notePauses(pauses []Pause) {
	for _, p := range pauses[t.journal.pausesWritten:] {
		if t.writeErr == nil {
			t.writeErr = t.journal.writePause(p)
		}
		t.journal.pausesWritten++
	}
}
