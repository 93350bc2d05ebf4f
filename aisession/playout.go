package aisession

import (
	"encoding/binary"
	"sync"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// playout is the queue of provider audio to be played. It splits pieces of any size into frames.
// Positions are samples of the format's clock since the session's start.
type playout struct {
	format     audio.Format
	limit      uint64        // largest number of queued samples
	startDelay time.Duration // audio to queue before playback starts

	mu                      sync.Mutex
	bytes                   []byte    // queued from head on: samples, or opus packets each after its length
	head                    int       // offset of the first queued byte
	skipBytes               int       // bytes still to come of a sample for which there was no room
	receivedEnd, nextSample uint64    // positions of the end of received audio and of the next sample to play
	playedSamples           uint64    // samples played; less than nextSample after a clear
	marks                   []mark    // by position
	playing                 bool      // playback has begun and the queue has not run empty since
	oldestArrival           time.Time // arrival of the oldest queued audio
	hasNewAudio             bool      // audio has arrived since the last takeAudio
	emptiedAt               time.Time // when it last ran empty; zero if never
}

// mark is a position in the audio that the provider asked to be notified of.
type mark struct {
	position uint64
	name     string
	request  *aiprotocol.Message // the request that waits for the position; nil: the provider is notified
}

const (
	maxMarks     = 256
	lengthSize   = 2        // bytes of a packet's length in playout.bytes
	maxKeptBytes = 64 << 10 // bytes of memory kept while empty
)

func newPlayout(format audio.Format, s Settings) *playout {
	return &playout{
		format: format, startDelay: max(s.PlayoutLead, 0),
		limit: uint64(format.SamplesIn(s.PlayoutLimit)),
	}
}

// putAudio appends a piece of audio and returns the duration for which there was no room.
func (p *playout) putAudio(piece []byte, now time.Time) (dropped time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.empty() {
		p.oldestArrival = now
	}

	p.hasNewAudio = true
	if p.format.Encoding == audio.Opus {
		return p.putPacket(piece)
	}

	size := p.sampleBytes()
	skipped := min(p.skipBytes, len(piece))
	p.skipBytes -= skipped
	piece = piece[skipped:]

	room := max(int(p.limit)*size-(len(p.bytes)-p.head), 0) // ends with a sample, as the limit does
	if len(piece) > room {
		samples := (len(piece) - room + size - 1) / size
		p.skipBytes = samples*size - (len(piece) - room)
		dropped = p.format.Duration(samples)
		piece = piece[:room]
	}

	p.bytes = append(p.bytes, piece...)
	// From all bytes, not from the piece: pieces may end within a sample.
	p.receivedEnd = p.nextSample + uint64((len(p.bytes)-p.head)/size)
	return dropped
}

func (p *playout) putPacket(packet []byte) (dropped time.Duration) {
	samples := p.format.Samples(packet)
	if samples == 0 {
		return 0
	}
	if p.receivedEnd-p.nextSample+uint64(samples) > p.limit {
		return p.format.Duration(samples)
	}

	p.bytes = binary.BigEndian.AppendUint16(p.bytes, uint16(len(packet)))
	p.bytes = append(p.bytes, packet...)
	p.receivedEnd += uint64(samples)

	return 0
}

func (p *playout) empty() bool      { return p.receivedEnd == p.nextSample }
func (p *playout) sampleBytes() int { return p.format.FrameBytes() / audio.FrameSamples(p.format.Rate) }

// playoutTransitions has the transitions that a takeAudio observed.
type playoutTransitions struct {
	started  bool // playback began after silence
	afterGap bool // and the silence was shorter than maxGap
	ended    bool // the queue ran empty
}

// maxGap is the longest silence that counts as an interruption of the provider's speech.
const maxGap = 200 * time.Millisecond

// takeAudio appends the audio to play next to into: want samples, or one packet. It appends fewer samples
// only if no more audio has arrived to complete the frame, and nothing if there is nothing to play.
func (p *playout) takeAudio(into []byte, want int, now time.Time) (piece []byte, t playoutTransitions) {
	p.mu.Lock()
	defer p.mu.Unlock()

	hasNewAudio := p.hasNewAudio
	p.hasNewAudio = false
	if p.empty() {
		return into, t
	}

	queuedSamples := p.receivedEnd - p.nextSample
	if !p.playing {
		// Audio that is shorter than the lead starts when it has waited as long.
		if p.format.Duration(int(queuedSamples)) < p.startDelay && now.Sub(p.oldestArrival) < p.startDelay {
			return into, t
		}
		p.playing, t.started = true, true
		t.afterGap = !p.emptiedAt.IsZero() && now.Sub(p.emptiedAt) < maxGap
	}

	switch {
	case p.format.Encoding == audio.Opus:
		n := lengthSize + int(binary.BigEndian.Uint16(p.bytes[p.head:]))
		into = append(into, p.bytes[p.head+lengthSize:p.head+n]...)
		p.advance(n, uint64(p.format.Samples(into)))
	case queuedSamples < uint64(want) && hasNewAudio:
		return into, t // the rest of the frame may still arrive
	default:
		samples := min(queuedSamples, uint64(want))
		n := int(samples) * p.sampleBytes()
		into = append(into, p.bytes[p.head:p.head+n]...)
		p.advance(n, samples)
	}

	if p.empty() {
		p.playing, p.emptiedAt, t.ended = false, now, true
	}

	return into, t
}

// advance removes the first n bytes, which were so many samples.
func (p *playout) advance(n int, samples uint64) {
	p.head += n
	p.nextSample += samples
	p.playedSamples += samples
	p.compact()
}

// compact moves the queued bytes to the front once the free part is at least as large.
func (p *playout) compact() {
	switch rest := len(p.bytes) - p.head; {
	case rest == 0 && cap(p.bytes) > maxKeptBytes:
		p.bytes, p.head = nil, 0
	case rest == 0, p.head > maxKeptBytes && p.head > rest:
		p.bytes = append(p.bytes[:0], p.bytes[p.head:]...)
		p.head = 0
	}
}

// hasAudio reports whether anything is left to play.
func (p *playout) hasAudio() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.empty()
}

// addMark stores a mark at the end of the received audio, or a request that waits for it. It returns false if
// there are too many.
func (p *playout) addMark(name string, request *aiprotocol.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) == maxMarks {
		return false
	}
	p.marks = append(p.marks, mark{position: p.receivedEnd, name: name, request: request})
	return true
}

// nextMark removes and returns a mark that has been played, and the request that waited for it; false if there
// is none.
func (p *playout) nextMark() (m aiprotocol.Mark, request *aiprotocol.Message, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) == 0 || p.marks[0].position > p.nextSample {
		return aiprotocol.Mark{}, nil, false
	}
	first := p.marks[0]
	p.marks = append(p.marks[:0], p.marks[1:]...)
	return aiprotocol.Mark{Name: first.name, Played: p.format.Duration(int(p.playedSamples))}, first.request, true
}

// clear drops the queued audio. Marks within it count as reached and are returned by nextMark.
func (p *playout) clear() aiprotocol.Cleared {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped := p.receivedEnd - p.nextSample
	p.nextSample, p.head, p.skipBytes, p.bytes = p.receivedEnd, 0, 0, p.bytes[:0]
	p.playing = false
	p.compact()
	return aiprotocol.Cleared{Played: p.format.Duration(int(p.playedSamples)), Dropped: p.format.Duration(int(dropped))}
}

// restart clears the queue for a new connection, whose positions start at zero.
func (p *playout) restart() {
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receivedEnd, p.nextSample, p.playedSamples, p.marks = 0, 0, 0, nil
}
