package recording

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/recording/envelope"
	"trunkline/telephony/audio"
	"trunkline/telephony/g711"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

const (
	takeFlush  = 500 * time.Millisecond // between writes to the journal
	takeJitter = 400 * time.Millisecond // how late a packet may be
	takeWindow = 2 * liveRate           // samples between what is written and the newest packet
	takeSuffix = ".take"
	// takeAbandoned is the age of a journal that no process writes any more.
	takeAbandoned = 10 * time.Second
	// maxQueuedBytes bounds the packets between two writes.
	maxQueuedBytes = 128 << 10
)

// The channels of a recording.
const (
	channelCaller = localcall.Caller
	channelCallee = localcall.Callee
	channelCount  = localcall.Voices
)

// take is one recording of a call in progress. It is the rtp.Tap of the caller's side: the packets
// of its peer are the caller, those sent to it the callee. They are queued as they are, and decoded
// on the take's own goroutine, which writes to the journal and ends with stop.
type take struct {
	began   time.Time
	journal *journal
	log     *slog.Logger
	onKeys  func() // called on a goroutine of its own when the pause keys are pressed

	mu       sync.Mutex
	media    liveMedia
	clocks   [channelCount]rtpClock
	queue    []queuedPacket
	arena    []byte // payloads of queue
	spare    []byte
	pausedAt int64   // samples; notPaused
	pauses   []Pause // that have ended
	keys     keySequence

	// Only the goroutine uses these.
	flushed  int64 // samples that are in the journal
	window   [channelCount][takeWindow]int16
	opus     [channelCount]*audio.Transcoder
	pcm      []int16
	bytes    []byte
	writeErr error

	stopping chan struct{}
	stopOnce sync.Once
	done     chan struct{}
}

const notPaused = -1

// queuedPacket is a packet's payload in the arena.
type queuedPacket struct {
	channel  int
	at       int64
	encoding audio.Encoding
	from, to int
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

func newTake(j *journal, log *slog.Logger) *take {
	return &take{
		began: time.Now(), journal: j, log: log, onKeys: func() {}, pausedAt: notPaused,
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
}

func (t *take) useMedia(agreed sip.NegotiatedMedia) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.media = newLiveMedia(agreed)
}

// now returns the position of the present.
func (t *take) now() int64 { return samples(time.Since(t.began)) }

// Received implements rtp.Tap.
func (t *take) Received(packet *rtp.Packet) { t.hear(channelCaller, packet) }

// Sent implements rtp.Tap.
func (t *take) Sent(packet *rtp.Packet) { t.hear(channelCallee, packet) }

// hear queues a packet's audio. During a pause it is not even queued.
func (t *take) hear(channel int, packet *rtp.Packet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	payload := t.media.payloads[channel][packet.PayloadType&0x7F]
	if payload.Keys {
		t.hearKey(channel, packet)
		return
	}
	if payload.Format.Encoding == "" {
		return
	}
	at := t.clocks[channel].position(packet.SSRC, packet.Timestamp, uint32(payload.Format.Rate), t.now())
	if t.pausedAt != notPaused && at >= t.pausedAt || len(t.arena)+len(packet.Payload) > maxQueuedBytes {
		return
	}
	from := len(t.arena)
	t.arena = append(t.arena, packet.Payload...)
	t.queue = append(t.queue, queuedPacket{channel, at, payload.Format.Encoding, from, len(t.arena)})
}

// hearKey handles a key press. The caller holds mu.
func (t *take) hearKey(channel int, packet *rtp.Packet) {
	press, ended := t.media.dtmf[channel].HandleEvent(packet, time.Now())
	if ended && t.keys.press(channel, press.Digit) {
		go t.onKeys()
	}
}

// keySequence recognises the pause keys on each channel.
type keySequence struct {
	keys    string
	pressed [channelCount]string
}

func (k *keySequence) press(channel int, digit byte) bool {
	if k.keys == "" {
		return false
	}
	pressed := k.pressed[channel] + string(digit)
	k.pressed[channel] = pressed[max(0, len(pressed)-len(k.keys)):]
	if k.pressed[channel] != k.keys {
		return false
	}
	k.pressed[channel] = ""
	return true
}

// beginPause begins a pause; false if there is one.
func (t *take) beginPause() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pausedAt != notPaused {
		return false
	}
	t.pausedAt = t.now()
	return true
}

// resume ends the pause; false if there is none.
func (t *take) resume() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.endPause(t.now())
}

// endPause ends a pause at a position. The caller holds mu.
func (t *take) endPause(at int64) bool {
	if t.pausedAt == notPaused {
		return false
	}
	t.pauses = append(t.pauses, Pause{millis(t.pausedAt), millis(max(at, t.pausedAt))})
	t.pausedAt = notPaused
	return true
}

// run writes to the journal until stop.
func (t *take) run() {
	defer close(t.done)
	ticker := time.NewTicker(takeFlush)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.flush(t.now() - samples(takeJitter))
		case <-t.stopping:
			t.mu.Lock()
			end := t.now()
			t.endPause(end)
			t.mu.Unlock()
			t.flush(end)
			if t.journal.sealer != nil {
				t.journal.sealer.key.Root.Wipe()
			}
			return
		}
	}
}

// stop ends run and waits for it.
func (t *take) stop() {
	t.stopOnce.Do(func() { close(t.stopping) })
	<-t.done
}

// flush decodes the queue and writes everything before a position.
func (t *take) flush(until int64) {
	t.mu.Lock()
	queue, arena := t.queue, t.arena
	t.queue, t.arena = nil, t.spare[:0]
	pauses, pausedAt := t.pauses, t.pausedAt
	t.mu.Unlock()

	silent := silence{pauses: pauses, open: pausedAt}
	for _, p := range queue {
		t.place(&p, arena[p.from:p.to], silent)
	}
	clear(arena)
	t.spare = arena
	for t.flushed < until {
		t.emit(min(until-t.flushed, liveRate))
	}
	t.notePauses(pauses)
}

// silence has the pauses.
type silence struct {
	pauses []Pause
	open   int64 // start of one that has not ended; notPaused
}

// covers reports whether a position is in a pause.
func (s *silence) covers(at int64) bool {
	if s.open != notPaused && at >= s.open {
		return true
	}
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
func (t *take) place(p *queuedPacket, payload []byte, silent silence) {
	pcm, err := t.decode(p, payload)
	if err != nil {
		return // it stays silent, as a lost packet does
	}
	end := p.at + int64(len(pcm))
	for end-t.flushed > takeWindow { // this goroutine was late
		t.emit(min(end-t.flushed-takeWindow, liveRate))
	}
	for i, sample := range pcm {
		at := p.at + int64(i)
		if at >= t.flushed && !silent.covers(at) {
			t.window[p.channel][at%takeWindow] = sample
		}
	}
	clear(pcm)
}

func (t *take) decode(p *queuedPacket, payload []byte) ([]int16, error) {
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
		decoder, err := audio.NewTranscoder(audio.Format{Encoding: audio.Opus, Rate: 48000}, audio.Format{Encoding: audio.PCM16, Rate: liveRate})
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
func (t *take) emit(n int64) {
	t.bytes = t.bytes[:0]
	for range n {
		i := t.flushed % takeWindow
		for channel := range t.window {
			sample := uint16(t.window[channel][i])
			t.bytes = append(t.bytes, byte(sample), byte(sample>>8))
			t.window[channel][i] = 0
		}
		t.flushed++
	}
	if t.writeErr == nil && n > 0 {
		t.writeErr = t.journal.writeAudio(t.bytes)
		if t.writeErr != nil {
			t.log.Error("recording of a call ended: its file cannot be written", "recording_id", t.journal.params.RecordingID, "error", t.writeErr)
		}
	}
	clear(t.bytes)
}

// notePauses writes the pauses that have ended since the last call.
func (t *take) notePauses(pauses []Pause) {
	for _, p := range pauses[t.journal.pauses:] {
		if t.writeErr == nil {
			t.writeErr = t.journal.writePause(p)
		}
		t.journal.pauses++
	}
}

// takeName returns the file of a recording in progress.
func (s *Service) takeName(accountID, recordingID string) string {
	return filepath.Join(s.takes, recordingID+"@"+accountID+takeSuffix)
}

// createTake creates a recording of a call in progress under a free id.
func (s *Service) createTake(ctx context.Context, accountID string, call Call) (*take, error) {
	if s.takes == "" {
		return nil, fault.Unavailable(nil, 0, "this node does not record calls")
	}
	sealer, err := s.currentSealer(ctx, accountID)
	if err != nil {
		s.metrics.refused.Inc()
		return nil, err
	}
	if err := os.MkdirAll(s.takes, 0o700); err != nil {
		return nil, fileError(err, "creating the folder of recordings in progress")
	}
	d := takeDescription{AccountID: accountID, Call: call}
	var params envelope.Params
	if sealer != nil {
		d.Sealed, d.Algorithm, d.KeyVersion = true, sealer.suite.String(), int64(sealer.key.Version)
		params = envelope.Params{Suite: sealer.suite, ContentType: "audio/L16", Key: sealer.key}
	}
	params.AccountID, params.Created = accountID, time.Now().UTC()

	for attempt := 1; ; attempt++ {
		d.RecordingID = takeID(call.CallID, attempt)
		params.RecordingID = d.RecordingID
		taken, err := s.rows.exists(ctx, accountID, d.RecordingID)
		if err != nil {
			return nil, err
		}
		if taken {
			continue
		}
		j, err := createJournal(s.takeName(accountID, d.RecordingID), d, sealer, params)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return newTake(j, s.log), nil
	}
}

// takeID returns the id of a call's recording: the call's id, from the second on with a number.
func takeID(callID string, attempt int) string {
	id := strings.Map(func(r rune) rune {
		if r < 128 && envelope.ValidID("x"+string(r)) {
			return r
		}
		return '_'
	}, callID)
	id = strings.TrimLeft(id, ".")
	id = id[:min(len(id), 120)]
	if attempt > 1 || id == "" {
		id += fmt.Sprintf("-%d", attempt)
	}
	return id
}

// storeTake stores a recording whose journal is complete, and removes the journal.
func (s *Service) storeTake(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fileError(err, "opening a recording in progress")
	}
	defer func() { _ = file.Close() }() // opened for reading
	r, err := openJournal(file)
	if err != nil {
		return err
	}
	d := &r.description
	sealer, err := s.takeSealer(ctx, d)
	if err != nil {
		return err
	}
	r.rootOf = func(h *envelope.Header) (*envelope.Root, error) {
		key, err := s.keys.Key(ctx, d.AccountID, int64(h.KeyVersion))
		if err != nil {
			return nil, err
		}
		return s.roots.Root(key.Key, key.Salt, h.Iterations)
	}

	call := d.Call
	call.DurationMS, call.Channels = millis(r.samples), channelCount
	u := Upload{AccountID: d.AccountID, RecordingID: d.RecordingID, ContentType: "audio/wav", Call: call, Pauses: r.pauses, Body: r}
	row, err := s.writeObject(ctx, &u, sealer)
	if err != nil {
		return err
	}
	err = s.createRow(ctx, row)
	if err != nil && fault.KindOf(err) != fault.KindConflict { // a crash between the row and the removal
		return err
	}
	return fileError(ignoreMissing(os.Remove(name)), "removing the file of a recording in progress")
}

// takeSealer returns the sealer with which a recording began.
func (s *Service) takeSealer(ctx context.Context, d *takeDescription) (*sealer, error) {
	if !d.Sealed {
		return nil, nil
	}
	key, err := s.keys.Key(ctx, d.AccountID, d.KeyVersion)
	if err != nil {
		return nil, err
	}
	return s.newSealer(encryptionOf(d, key))
}

// storeAbandoned stores the recordings of calls whose process was killed, and those that could not
// be stored when they ended.
func (s *Service) storeAbandoned(ctx context.Context) error {
	if s.takes == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(s.takes, "*"+takeSuffix))
	if err != nil {
		return err
	}
	var failures error
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || time.Since(info.ModTime()) < takeAbandoned {
			continue
		}
		err = s.storeTake(ctx, name)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", filepath.Base(name), err))
		}
	}
	return failures
}
