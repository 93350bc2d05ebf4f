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

func (r *liveRecording) useMedia(agreed sip.NegotiatedMedia) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.media = newLiveMedia(agreed)
}

// now returns the position of the present.
func (r *liveRecording) now() int64 { return samples(time.Since(r.beganAt)) }

// Received implements rtp.Tap.
func (r *liveRecording) Received(packet *rtp.Packet) { r.receive(channelCaller, packet) }

// Sent implements rtp.Tap.
func (r *liveRecording) Sent(packet *rtp.Packet) { r.receive(channelCallee, packet) }

// receive queues a packet's audio. During a pause it is not even queued.
func (r *liveRecording) receive(channel int, packet *rtp.Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()

	payload := r.media.payloads[channel][packet.PayloadType&0x7F]
	if payload.Keys {
		r.handleKey(channel, packet)
		return
	}
	if payload.Format.Encoding == "" || r.failed {
		return
	}

	at := r.clocks[channel].position(packet.SSRC, packet.Timestamp, uint32(payload.Format.Rate), r.now())
	// A packet from before the pause may come late: it belongs to the recording. Above the bound the rest is lost.
	if r.pausedAt != notPaused && at >= r.pausedAt || len(r.arena)+len(packet.Payload) > maxQueuedBytes {
		return
	}

	from := len(r.arena)
	r.arena = append(r.arena, packet.Payload...)
	r.queue = append(r.queue, queuedPacket{channel: channel, position: at,
		encoding: payload.Format.Encoding, from: from, to: len(r.arena)})
}

// handleKey handles a key press. The caller holds mu.
func (r *liveRecording) handleKey(channel int, packet *rtp.Packet) {
	press, ended := r.media.dtmf[channel].HandleEvent(packet, time.Now())
	if ended && r.pauseKeys.press(channel, press.Digit) {
		// It takes mu, which is held here.
		go r.onKeys()
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
func (r *liveRecording) beginPause() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pausedAt != notPaused {
		return false
	}
	r.pausedAt = r.now()
	return true
}

// resume ends the pause; false if there is none.
func (r *liveRecording) resume() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endPause(r.now())
}

// endPause ends a pause at a position. The caller holds mu.
func (r *liveRecording) endPause(at int64) bool {
	if r.pausedAt == notPaused {
		return false
	}
	r.pauses = append(r.pauses, Pause{millis(r.pausedAt), millis(max(at, r.pausedAt))})
	r.pausedAt = notPaused
	return true
}

// run opens the journal and writes to it until stop. It returns the error of opening it.
func (r *liveRecording) run() error {
	if err := r.prepare(); err != nil {
		return err
	}

	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
			r.flushInTurn(func() int64 { return r.now() - samples(maxPacketDelay) })
		case <-r.stopping:
			r.flushInTurn(func() int64 { return r.endPosition })
			if r.journal.sealer != nil {
				r.journal.sealer.key.Root.Wipe()
			}
			return nil
		}
	}
}

// prepare opens the journal. After an error nothing more is queued.
func (r *liveRecording) prepare() error {
	defer close(r.opened)

	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()

	r.journal, r.openErr = r.openJournal(ctx)
	if r.openErr == nil {
		return nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	clear(r.arena)
	r.failed, r.queue, r.arena = true, nil, nil
	return r.openErr
}

// awaitOpen waits until the journal is open, and returns the error of opening it.
func (r *liveRecording) awaitOpen(ctx context.Context) error {
	select {
	case <-r.opened:
		return r.openErr
	case <-ctx.Done():
		return fault.Unavailable(ctx.Err(), retryAfter, "the recording has not begun yet")
	}
}

// stop ends the recording. It does not wait for run.
func (r *liveRecording) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped() {
		return
	}
	r.endPosition = r.now()
	// The pause lasts until the end of the recording.
	r.endPause(r.endPosition)
	close(r.stopping)
}

// stopped reports whether stop was called. The caller holds mu.
func (r *liveRecording) stopped() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// flushInTurn flushes up to a position, which is asked for when it is the live recording's turn. Of 200 calls that
// began at once all would write at once, and the goroutines that relay their packets would wait behind them for 40 ms.
func (r *liveRecording) flushInTurn(until func() int64) {
	r.writeTurns <- struct{}{}
	defer func() { <-r.writeTurns }()
	r.flush(until())
}

// flush decodes the queue and writes everything before a position.
func (r *liveRecording) flush(until int64) {
	r.mu.Lock()
	// Decoded without the lock, for which the call's packets wait.
	queue, arena := r.queue, r.arena
	r.queue, r.arena = nil, r.spareArena[:0]
	pauses, pausedAt := r.pauses, r.pausedAt
	r.mu.Unlock()

	silent := pauseSpans{pauses: pauses, openStart: pausedAt}
	for _, p := range queue {
		r.place(&p, arena[p.from:p.to], silent)
	}

	// Audio that is sealed on the disk does not stay in memory.
	clear(arena)
	r.spareArena = nil
	if cap(arena) <= maxSpareBytes {
		r.spareArena = arena
	}

	for r.writtenSamples < until {
		r.emit(min(until-r.writtenSamples, liveRate))
	}

	r.notePauses(pauses)
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
func (r *liveRecording) place(p *queuedPacket, payload []byte, silent pauseSpans) {
	pcm, err := r.decode(p, payload)
	if err != nil {
		return // it stays silent, as a lost packet does
	}

	end := p.position + int64(len(pcm))
	for end-r.writtenSamples > windowSamples { // this goroutine was late
		r.emit(min(end-r.writtenSamples-windowSamples, liveRate))
	}

	for i, sample := range pcm {
		at := p.position + int64(i)
		// Later than maxPacketDelay, its place is written.
		if at >= r.writtenSamples && !silent.covers(at) {
			r.window[p.channel][at%windowSamples] = sample
		}
	}

	clear(pcm)
}

func (r *liveRecording) decode(p *queuedPacket, payload []byte) ([]int16, error) {
	r.pcm = r.pcm[:0]
	switch p.encoding {
	case audio.ULaw:
		r.pcm = g711.ULaw().Decode(r.pcm, payload)
		return r.pcm, nil
	case audio.ALaw:
		r.pcm = g711.ALaw().Decode(r.pcm, payload)
		return r.pcm, nil
	}

	if r.opus[p.channel] == nil {
		decoder, err := audio.NewTranscoder(audio.Format{Encoding: audio.Opus, Rate: 48000},
			audio.Format{Encoding: audio.PCM16, Rate: liveRate})
		if err != nil {
			return nil, err
		}
		r.opus[p.channel] = decoder
	}

	decoder := r.opus[p.channel]
	if err := decoder.Decode(payload); err != nil {
		return nil, err
	}

	r.bytes = r.bytes[:0]
	for decoder.SamplesNeeded() == 0 {
		var err error
		r.bytes, err = decoder.EncodeFrame(r.bytes)
		if err != nil {
			return nil, err
		}
	}

	for i := 0; i+1 < len(r.bytes); i += 2 {
		r.pcm = append(r.pcm, int16(uint16(r.bytes[i])|uint16(r.bytes[i+1])<<8))
	}

	clear(r.bytes)
	return r.pcm, nil
}

// emit writes the next n samples of both channels, and makes room in the window.
func (r *liveRecording) emit(n int64) {
	r.bytes = r.bytes[:0]
	for range n {
		i := r.writtenSamples % windowSamples
		for channel := range r.window {
			sample := uint16(r.window[channel][i])
			r.bytes = append(r.bytes, byte(sample), byte(sample>>8))
			r.window[channel][i] = 0
		}

		r.writtenSamples++
	}

	if r.writeErr == nil && n > 0 {
		r.writeErr = r.journal.writeAudio(r.bytes)
		if r.writeErr != nil {
			r.log.Error("recording of a call ended: its file cannot be written",
				"recording_id", r.journal.params.RecordingID, "error", r.writeErr)
		}
	}

	clear(r.bytes)
}

// notePauses writes the pauses that have ended since the last call.
func (r *liveRecording) notePauses(pauses []Pause) {
	for _, p := range pauses[r.journal.pausesWritten:] {
		if r.writeErr == nil {
			r.writeErr = r.journal.writePause(p)
		}
		r.journal.pausesWritten++
	}
}
