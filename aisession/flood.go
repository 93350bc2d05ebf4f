package aisession

import "time"

// flood makes a provider that sends much of no use be read slowly, so that it
// costs neither a core nor another call's pace: TCP holds it back. Audio that is
// played costs nothing, but in crumbs.
type flood struct {
	debt  float64
	at    time.Time
	until time.Time // nothing is read before
}

const (
	floodRate  = 200  // useless messages a second that are read at full speed
	floodBurst = 1000 // and at once
	tinyPiece  = 20   // bytes of audio that are hardly worth a message
	tinyCost   = 0.2  // of a useless message
)

// charge counts useless messages, and has the reading wait where there were too
// many.
func (f *flood) charge(cost float64, now time.Time) {
	f.debt = max(0, f.debt-now.Sub(f.at).Seconds()*floodRate) + cost
	f.at = now
	if f.debt > floodBurst {
		f.debt = min(f.debt, 2*floodBurst)
		f.until = now.Add(time.Duration((f.debt - floodBurst) / floodRate * float64(time.Second)))
	}
}

// blocked says that nothing is to be read now.
func (f *flood) blocked(now time.Time) bool { return now.Before(f.until) }
