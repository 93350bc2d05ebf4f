package audio

import (
	"sync"
	"time"
)

// Jitter puts packets back into the order of their timestamps and says what is
// missing, at the pace of who plays them. It starts with no delay: a packet
// that comes after its time, when nothing behind it was played, moves the
// clock back and so makes room for the jitter seen (up to maxDelay); when more
// waits than is needed for a second, a frame is left out; for longer, where
// leaving out was wrong before.
type Jitter struct {
	format Format
	clock  bool // timestamps go on while nothing is sent, as those of RTP do

	mu       sync.Mutex
	queue    []packet // by timestamp
	free     [][]byte // payloads to use again
	started  bool
	newest   uint32 // the timestamp to be played next
	played   uint32 // the end of the last packet that was played
	spare    int    // the least that waited behind what was played, of this window
	frames   int    // played in this window
	window   int    // frames
	skipped  bool   // something was left out since the clock was moved back
	lates    int    // dropped in a row: the sender's clock has jumped
	counters JitterStats
}

type packet struct {
	timestamp uint32
	samples   int
	payload   []byte
}

// JitterStats count since the beginning.
type JitterStats struct {
	Packets  uint64 // taken
	Late     uint64 // dropped: their time had passed
	Repeated uint64 // dropped: there already, whole or in part
	Overrun  uint64 // dropped: too many waited
	Invalid  uint64 // dropped: no audio of the format
	Lost     uint64 // samples that nothing was there for
	Skipped  uint64 // samples left out to catch up
}

const (
	maxPackets  = 64
	maxDelay    = 200 * time.Millisecond
	farAhead    = 10 // times maxDelay ahead is another clock
	jumpAfter   = 10 // packets in a row too late: the clock is the sender's
	shortWindow = 50 // frames
	longWindow  = 400
)

// NewJitter makes a buffer for packets of the format. clocked says that
// timestamps tell the time (RTP); else they count what was sent.
func NewJitter(format Format, clocked bool) *Jitter {
	return &Jitter{format: format, clock: clocked, queue: make([]packet, 0, maxPackets), spare: maxSpare, window: shortWindow}
}

const maxSpare = int(^uint(0) >> 1)

// Put takes a packet; payload is copied. missed says that it came too late for
// the last Next, but not for one more: Skip then leaves it out.
func (j *Jitter) Put(timestamp uint32, payload []byte) (missed bool) {
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

// Skip leaves out the packet that would be next: its time has been filled.
func (j *Jitter) Skip() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) > 0 {
		p := j.take()
		j.newest = p.timestamp + uint32(p.samples)
		j.counters.Late++
		j.release(p)
	}
}

// ahead is how far a is after b, in samples.
func ahead(a, b uint32) int { return int(int32(a - b)) }

// admit says whether a packet's time has not passed, and moves the clock where
// that serves better than dropping it.
func (j *Jitter) admit(timestamp uint32) bool {
	most := int(maxDelay * time.Duration(j.format.Rate) / time.Second)
	early := ahead(timestamp, j.newest)
	switch {
	case early >= 0:
		j.lates = 0
		if early > farAhead*most { // another clock: what waits is of the old one
			for len(j.queue) > 0 {
				j.release(j.take())
				j.counters.Overrun++
			}
		}
		if len(j.queue) == 0 && (early > most || !j.clock) {
			j.newest = timestamp // nobody waits that long for what was never sent
		}
		return true
	case ahead(timestamp, j.played) >= 0 && -early <= most:
		j.lates = 0
		j.newest = timestamp
		if j.skipped {
			j.skipped, j.window = false, min(2*j.window, longWindow)
		}
		return true
	}
	if j.lates++; j.lates > jumpAfter && len(j.queue) == 0 {
		j.lates = 0
		j.newest, j.played = timestamp, timestamp
		return true
	}
	j.counters.Late++
	return false
}

// Next gives what is to be played next: a packet, or how many samples are
// missing, at most want. The packet's bytes are appended to into.
func (j *Jitter) Next(into []byte, want int) (payload []byte, missing int) {
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

// catchUp leaves a packet out when, for a whole window, there was one to spare.
func (j *Jitter) catchUp() {
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

func (j *Jitter) take() packet {
	p := j.queue[0]
	copy(j.queue, j.queue[1:])
	j.queue[len(j.queue)-1] = packet{}
	j.queue = j.queue[:len(j.queue)-1]
	return p
}

func (j *Jitter) release(p packet) { j.free = append(j.free, p.payload[:0]) }

func (j *Jitter) buffer() []byte {
	if len(j.free) == 0 {
		return make([]byte, 0, max(j.format.FrameBytes(), 256))
	}
	last := len(j.free) - 1
	b := j.free[last]
	j.free = j.free[:last]
	return b
}

// Reset forgets what waits: the next packet is the first.
func (j *Jitter) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 {
		j.release(j.take())
	}
	j.started = false
	j.frames, j.spare, j.lates = 0, maxSpare, 0
}

// Stats are the counts so far.
func (j *Jitter) Stats() JitterStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counters
}
