package recording

import "time"

// liveRate is the sample rate of recordings of Trunkline's own calls, in Hz.
const liveRate = 8000

// rtpClock maps the timestamps of one direction of a call to positions in samples on the clock of
// the recording, which both directions share. A lost packet is therefore a gap and not a shift.
//
// The first packet stands where it arrived. Later ones stand where their timestamp says, until
// that is resyncAfter from their arrival (another source, a jump), or differs by more than
// driftLimit from the arrival of every packet of a driftWindow (the peer's clock drifts).
type rtpClock struct {
	started   bool
	ssrc      uint32
	timestamp uint32 // of the packet at base, in ticks of its codec
	base      int64  // a position

	windowEnd int64 // position at which this driftWindow ends
	leastLag  int64 // in this window, of arrivals behind positions
}

const (
	resyncAfter = liveRate * 400 / 1000 // samples: 400 ms
	driftLimit  = liveRate * 20 / 1000  // samples: 20 ms
	driftWindow = liveRate * 5          // samples: 5 s
)

// position returns the position of a packet that arrived at a position.
func (c *rtpClock) position(ssrc, timestamp, rate uint32, arrived int64) int64 {
	if !c.started || ssrc != c.ssrc {
		c.restart(ssrc, timestamp, arrived)
		return arrived
	}

	at := c.base + int64(int32(timestamp-c.timestamp))*liveRate/int64(rate)
	lag := arrived - at
	if lag > resyncAfter || lag < -resyncAfter {
		c.restart(ssrc, timestamp, arrived)
		return arrived
	}

	c.leastLag = min(c.leastLag, lag)
	if arrived < c.windowEnd {
		return at
	}

	// The least lag is that of the clocks: the rest of a packet's is the network's.
	drift := c.leastLag
	c.windowEnd, c.leastLag = arrived+driftWindow, lag
	if drift > driftLimit || drift < -driftLimit {
		c.base += drift
		c.leastLag -= drift
	}

	// The timestamp wraps after 2^32 ticks: the base moves along.
	c.base, c.timestamp = c.base+int64(int32(timestamp-c.timestamp))*liveRate/int64(rate), timestamp
	return at
}

func (c *rtpClock) restart(ssrc, timestamp uint32, arrived int64) {
	*c = rtpClock{started: true, ssrc: ssrc, timestamp: timestamp, base: arrived, windowEnd: arrived + driftWindow}
}

// samples returns a duration in samples.
func samples(d time.Duration) int64 { return int64(d) * liveRate / int64(time.Second) }

// millis returns a number of samples in milliseconds.
func millis(n int64) int64 { return n * 1000 / liveRate }
