package audio

import (
	"sync"
	"time"
)

// JitterBuffer is a jitter buffer. It orders packets by timestamp and reports gaps, at the pace of its
// reader.
//
// It starts without delay. A packet that arrives after its play-out time while nothing later has been
// played moves the play-out clock back, which adds the observed jitter to the delay, up to maxDelay.
// When more packets than needed have waited for a second, it skips one frame; if the clock has to move
// back after a skip, it then waits for a longer period.
type JitterBuffer struct {
	format Format
	clock  bool // timestamps advance while nothing is sent, as in RTP

	mu        sync.Mutex
	queue     []packet // ordered by timestamp
	free      [][]byte // payload buffers to reuse
	started   bool
	newest    uint32 // next timestamp to play
	played    uint32 // end of the last packet played
	spare     int    // smallest number of samples waiting behind play-out, in this window
	frames    int    // frames played in this window
	window    int    // window length in frames
	skipped   bool   // a packet was skipped since the clock last moved back
	lateInRow int    // packets dropped in a row as late: detects a jump of the sender's clock
	counters  JitterBufferStats
}

type packet struct {
	timestamp uint32
	samples   int
	payload   []byte
}

// JitterBufferStats has the counters of a JitterBuffer.
type JitterBufferStats struct {
	Packets  uint64 // packets accepted
	Late     uint64 // packets dropped because their play-out time had passed
	Repeated uint64 // packets dropped because all or part of their audio was present
	Overrun  uint64 // packets dropped because the buffer was full
	Invalid  uint64 // packets dropped because they are not valid in the format
	Lost     uint64 // samples missing at their play-out time
	Skipped  uint64 // samples skipped to reduce the delay
}

const (
	maxPackets  = 64
	maxDelay    = 200 * time.Millisecond
	farAhead    = 10 // multiple of maxDelay that indicates a new sender clock
	jumpAfter   = 10 // late packets in a row after which the sender's clock is taken over
	shortWindow = 50 // frames
	longWindow  = 400
)

// NewJitterBuffer returns a jitter buffer for packets of the format. clocked means that timestamps measure
// time, as in RTP; otherwise they count the samples sent.
func NewJitterBuffer(format Format, clocked bool) *JitterBuffer {
	return &JitterBuffer{format: format, clock: clocked, queue: make([]packet, 0, maxPackets), spare: maxSpare, window: shortWindow}
}

const maxSpare = int(^uint(0) >> 1)

// Put adds a packet and copies its payload. missed reports that the packet was too late for the last
// Next but is in time for the following one; the caller may then call Skip to drop it.
func (j *JitterBuffer) Put(timestamp uint32, payload []byte) (missed bool) {
	samples := j.format.Samples(payload)
	j.mu.Lock()
	defer j.mu.Unlock()
	if samples == 0 {
		j.counters.Invalid++
		return false
	}
	if !j.started {
		j.started, j.newest, j.played = true, timestamp, timestamp
	}
	behind := ahead(j.newest, timestamp)
	if !j.admit(timestamp) {
		return false
	}
	at := len(j.queue)
	for at > 0 && ahead(j.queue[at-1].timestamp, timestamp) > 0 {
		at--
	}
	if at > 0 && ahead(timestamp, j.queue[at-1].timestamp) < j.queue[at-1].samples ||
		at < len(j.queue) && ahead(j.queue[at].timestamp, timestamp) < samples {
		j.counters.Repeated++
		return false
	}
	if len(j.queue) == maxPackets {
		if at == 0 {
			j.counters.Overrun++
			return false
		}
		j.release(j.take())
		j.counters.Overrun++
		at--
		j.newest = j.queue[0].timestamp
	}
	j.counters.Packets++
	j.queue = append(j.queue, packet{})
	copy(j.queue[at+1:], j.queue[at:])
	j.queue[at] = packet{timestamp, samples, append(j.buffer(), payload...)}
	return behind > 0 && behind <= FrameSamples(j.format.Rate) && len(j.queue) == 1
}

// Skip drops the next packet. It is used when the packet's time was already concealed.
func (j *JitterBuffer) Skip() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) > 0 {
		p := j.take()
		j.newest = p.timestamp + uint32(p.samples)
		j.counters.Late++
		j.release(p)
	}
}

// ahead returns by how many samples a is after b.
func ahead(a, b uint32) int { return int(int32(a - b)) }

// admit reports whether a packet is in time. It moves the play-out clock if that loses less audio than
// dropping the packet.
func (j *JitterBuffer) admit(timestamp uint32) bool {
	most := int(maxDelay * time.Duration(j.format.Rate) / time.Second)
	early := ahead(timestamp, j.newest)
	switch {
	case early >= 0:
		j.lateInRow = 0
		if early > farAhead*most { // the sender's clock has changed: drop what the old one timed
			for len(j.queue) > 0 {
				j.release(j.take())
				j.counters.Overrun++
			}
		}
		if len(j.queue) == 0 && (early > most || !j.clock) {
			j.newest = timestamp // the gap is too long to wait for
		}
		return true
	case ahead(timestamp, j.played) >= 0 && -early <= most:
		j.lateInRow = 0
		j.newest = timestamp
		if j.skipped {
			j.skipped, j.window = false, min(2*j.window, longWindow)
		}
		return true
	}
	if j.lateInRow++; j.lateInRow > jumpAfter && len(j.queue) == 0 {
		j.lateInRow = 0
		j.newest, j.played = timestamp, timestamp
		return true
	}
	j.counters.Late++
	return false
}

// Next returns the next packet to play, or the number of missing samples, at most want. The payload is
// appended to into.
func (j *JitterBuffer) Next(into []byte, want int) (payload []byte, missing int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.started {
		return into, want
	}
	if len(j.queue) == 0 {
		j.counters.Lost += uint64(want)
		j.spare = 0
		if j.clock {
			j.newest += uint32(want)
		}
		return into, want
	}
	if gap := ahead(j.queue[0].timestamp, j.newest); gap > 0 {
		gap = min(gap, want)
		j.counters.Lost += uint64(gap)
		j.newest += uint32(gap)
		return into, gap
	}
	j.catchUp()
	p := j.take()
	j.newest = p.timestamp + uint32(p.samples)
	j.played = j.newest
	into = append(into, p.payload...)
	j.release(p)
	return into, 0
}

// catchUp skips a packet if at least one was to spare during a whole window.
func (j *JitterBuffer) catchUp() {
	last := j.queue[len(j.queue)-1]
	head := j.queue[0]
	j.spare = min(j.spare, ahead(last.timestamp, head.timestamp))
	if j.frames++; j.frames < j.window {
		return
	}
	if j.spare >= head.samples && len(j.queue) > 1 {
		j.counters.Skipped += uint64(head.samples)
		j.release(j.take())
		j.skipped = true
	}
	j.frames, j.spare = 0, maxSpare
}

func (j *JitterBuffer) take() packet {
	p := j.queue[0]
	copy(j.queue, j.queue[1:])
	j.queue[len(j.queue)-1] = packet{}
	j.queue = j.queue[:len(j.queue)-1]
	return p
}

func (j *JitterBuffer) release(p packet) { j.free = append(j.free, p.payload[:0]) }

func (j *JitterBuffer) buffer() []byte {
	if len(j.free) == 0 {
		return make([]byte, 0, max(j.format.FrameBytes(), 256))
	}
	last := len(j.free) - 1
	b := j.free[last]
	j.free = j.free[:last]
	return b
}

// Reset drops all waiting packets. The next packet sets the play-out clock.
func (j *JitterBuffer) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 {
		j.release(j.take())
	}
	j.started = false
	j.frames, j.spare, j.lateInRow = 0, maxSpare, 0
}

// Stats returns the counters.
func (j *JitterBuffer) Stats() JitterBufferStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counters
}
