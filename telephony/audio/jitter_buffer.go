package audio

import (
	"math"
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
//
// One for a recogniser, which need not hear in time, takes packets that are up to patience late and
// skips only what waits longer: after a stall of the network it has all that came, and stays behind
// until the sender pauses.
type JitterBuffer struct {
	format    Format
	timeBased bool          // timestamps advance while nothing is sent, as in RTP
	maxLate   time.Duration // maximum by which the clock moves back
	spare     int           // samples that may wait for ever

	mu              sync.Mutex
	queue           []packet // ordered by timestamp
	free            [][]byte // payload buffers to reuse
	started         bool
	nextTimestamp   uint32 // next timestamp to play
	playedEnd       uint32 // end of the last packet played
	minWaiting      int    // smallest number of samples waiting behind play-out, in this window
	windowFrames    int    // frames played in this window
	windowLength    int    // window length in frames
	hasSkipped      bool   // a packet was skipped since the clock last moved back
	consecutiveLate int    // packets dropped in a row as late: detects a jump of the sender's clock
	counters        JitterBufferStats
}

// packet is a packet that waits for its play-out time.
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
	maxPackets         = 64
	maxDelay           = 200 * time.Millisecond
	patience           = time.Second // below the audio of maxPackets
	clockJumpFactor    = 10          // multiple of maxDelay that indicates a new sender clock
	maxConsecutiveLate = 10          // late packets in a row after which the sender's clock is taken over
	shortWindow        = 50          // frames
	longWindow         = 400
)

// NewJitterBuffer returns a jitter buffer for packets of the format. timeBased means that timestamps measure
// time, as in RTP; otherwise they count the samples sent.
func NewJitterBuffer(format Format, timeBased bool) *JitterBuffer {
	return &JitterBuffer{format: format, timeBased: timeBased, maxLate: maxDelay, queue: make([]packet, 0, maxPackets),
		minWaiting: math.MaxInt, windowLength: shortWindow}
}

// NewPatientJitterBuffer returns a jitter buffer for a reader that need not hear in time.
func NewPatientJitterBuffer(format Format, timeBased bool) *JitterBuffer {
	j := NewJitterBuffer(format, timeBased)
	j.maxLate, j.spare = patience, format.SamplesIn(patience)
	return j
}

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
		j.started, j.nextTimestamp, j.playedEnd = true, timestamp, timestamp
	}

	// Before admit, which may move the clock back to the packet.
	behind := timestampDiff(j.nextTimestamp, timestamp)
	if !j.admit(timestamp) {
		return false
	}

	index := len(j.queue)
	for index > 0 && timestampDiff(j.queue[index-1].timestamp, timestamp) > 0 {
		index--
	}

	if index > 0 && timestampDiff(timestamp, j.queue[index-1].timestamp) < j.queue[index-1].samples ||
		index < len(j.queue) && timestampDiff(j.queue[index].timestamp, timestamp) < samples {
		j.counters.Repeated++
		return false
	}

	if len(j.queue) == maxPackets {
		// It is older than all that wait.
		if index == 0 {
			j.counters.Overrun++
			return false
		}

		j.recycle(j.popFirst())
		j.counters.Overrun++
		index--
		j.nextTimestamp = j.queue[0].timestamp
	}

	j.counters.Packets++
	j.queue = append(j.queue, packet{})
	copy(j.queue[index+1:], j.queue[index:])
	j.queue[index] = packet{timestamp, samples, append(j.getBuffer(), payload...)}

	return behind > 0 && behind <= FrameSamples(j.format.Rate) && len(j.queue) == 1
}

// Skip drops the next packet. It is used when the packet's time was already concealed.
func (j *JitterBuffer) Skip() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) > 0 {
		p := j.popFirst()
		j.nextTimestamp = p.timestamp + uint32(p.samples)
		j.counters.Late++
		j.recycle(p)
	}
}

// timestampDiff returns by how many samples a is after b.
func timestampDiff(a, b uint32) int { return int(int32(a - b)) }

// admit reports whether a packet is in time. It moves the play-out clock if that loses less audio than
// dropping the packet.
func (j *JitterBuffer) admit(timestamp uint32) bool {
	maxDelaySamples := j.format.SamplesIn(maxDelay)
	early := timestampDiff(timestamp, j.nextTimestamp)
	switch {
	case early >= 0:
		j.consecutiveLate = 0
		if early > clockJumpFactor*maxDelaySamples { // the sender's clock has changed: drop what the old one timed
			for len(j.queue) > 0 {
				j.recycle(j.popFirst())
				j.counters.Overrun++
			}
		}

		if len(j.queue) == 0 && (early > maxDelaySamples || !j.timeBased) {
			j.nextTimestamp = timestamp // the gap is too long to wait for
		}

		return true
	case timestampDiff(timestamp, j.playedEnd) >= 0 && -early <= j.format.SamplesIn(j.maxLate):
		j.consecutiveLate = 0
		j.nextTimestamp = timestamp
		if j.hasSkipped {
			j.hasSkipped, j.windowLength = false, min(2*j.windowLength, longWindow)
		}
		return true
	}

	j.consecutiveLate++
	if j.consecutiveLate > maxConsecutiveLate && len(j.queue) == 0 {
		j.consecutiveLate = 0
		j.nextTimestamp, j.playedEnd = timestamp, timestamp
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
		j.minWaiting = 0
		// A sender that counts its samples goes on where it has stopped.
		if j.timeBased {
			j.nextTimestamp += uint32(want)
		}
		return into, want
	}

	gap := timestampDiff(j.queue[0].timestamp, j.nextTimestamp)
	if gap > 0 {
		gap = min(gap, want)
		j.counters.Lost += uint64(gap)
		j.nextTimestamp += uint32(gap)
		return into, gap
	}

	j.reduceDelay()
	p := j.popFirst()
	j.nextTimestamp = p.timestamp + uint32(p.samples)
	j.playedEnd = j.nextTimestamp
	into = append(into, p.payload...)
	j.recycle(p)

	return into, 0
}

// reduceDelay skips a packet if at least one was waiting throughout a window.
func (j *JitterBuffer) reduceDelay() {
	last := j.queue[len(j.queue)-1]
	head := j.queue[0]
	j.minWaiting = min(j.minWaiting, timestampDiff(last.timestamp, head.timestamp))
	j.windowFrames++
	if j.windowFrames < j.windowLength {
		return
	}

	if j.minWaiting >= max(head.samples, j.spare) && len(j.queue) > 1 {
		j.counters.Skipped += uint64(head.samples)
		j.recycle(j.popFirst())
		j.hasSkipped = true
	}

	j.windowFrames, j.minWaiting = 0, math.MaxInt
}

func (j *JitterBuffer) popFirst() packet {
	p := j.queue[0]
	copy(j.queue, j.queue[1:])
	j.queue[len(j.queue)-1] = packet{}
	j.queue = j.queue[:len(j.queue)-1]
	return p
}

func (j *JitterBuffer) recycle(p packet) { j.free = append(j.free, p.payload[:0]) }

func (j *JitterBuffer) getBuffer() []byte {
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
		j.recycle(j.popFirst())
	}
	j.started = false
	j.windowFrames, j.minWaiting, j.consecutiveLate = 0, math.MaxInt, 0
}

// Stats returns the counters.
func (j *JitterBuffer) Stats() JitterBufferStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counters
}
