package aisession

import "time"

// flood limits the rate of messages other than playable audio that are read from a provider, so that
// they take no CPU time from other calls. TCP flow control then slows the sender. Audio that is played
// is not counted unless it comes in tiny pieces.
type flood struct {
	debt  float64
	at    time.Time
	until time.Time // reading resumes at this time
}

const (
	floodRate  = 200  // useless messages per second read without delay
	floodBurst = 1000 // burst of useless messages read without delay
	tinyPiece  = 20   // bytes of audio below which a message counts
	tinyCost   = 0.2  // cost of such a message, in useless messages
)

// charge counts useless messages and delays reading above the limit.
func (f *flood) charge(cost float64, now time.Time) {
	f.debt = max(0, f.debt-now.Sub(f.at).Seconds()*floodRate) + cost
	f.at = now
	if f.debt > floodBurst {
		f.debt = min(f.debt, 2*floodBurst)
		f.until = now.Add(time.Duration((f.debt - floodBurst) / floodRate * float64(time.Second)))
	}
}

// blocked reports whether reading is delayed.
func (f *flood) blocked(now time.Time) bool { return now.Before(f.until) }
