package aisession

import "time"

// readThrottle limits the rate of messages other than playable audio that are read from a provider, so that
// they take no CPU time from other calls. TCP flow control then slows the sender. Audio that is played
// is not counted unless it comes in pieces under minAudioBytes.
type readThrottle struct {
	excessMessages float64
	updatedAt      time.Time
	resumeAt       time.Time // reading resumes at this time
}

const (
	throttleRate   = 200  // non-audio messages per second read without delay
	throttleBurst  = 1000 // burst of non-audio messages read without delay
	minAudioBytes  = 20   // bytes of audio below which a message counts
	smallAudioCost = 0.2  // cost of such a message, in non-audio messages
	ignoredCost    = 0.2  // cost of a message that the protocol has and the session does not need
)

// charge counts non-audio messages and delays reading above the limit.
func (t *readThrottle) charge(cost float64, now time.Time) {
	t.excessMessages = max(0, t.excessMessages-now.Sub(t.updatedAt).Seconds()*throttleRate) + cost
	t.updatedAt = now
	if t.excessMessages > throttleBurst {
		// Bounds the pause to throttleBurst / throttleRate, 5 s, however much came within one tick.
		t.excessMessages = min(t.excessMessages, 2*throttleBurst)
		t.resumeAt = now.Add(time.Duration((t.excessMessages - throttleBurst) / throttleRate * float64(time.Second)))
	}
}

// blocked reports whether reading is delayed.
func (t *readThrottle) blocked(now time.Time) bool { return now.Before(t.resumeAt) }
