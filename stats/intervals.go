package stats

import (
	"time"

	"trunkline/event"
)

// intervals divides the time, and says how long each interval takes events: from both follows when an
// entry is due without an event.
type intervals struct {
	length time.Duration
	late   time.Duration // Rules.Late
}

func (i intervals) seconds() int64 { return int64(i.length / time.Second) }

// startOf returns the start of the interval that contains a time, in Unix seconds.
func (i intervals) startOf(millis int64) int64 {
	seconds := millis / 1000
	return seconds - seconds%i.seconds()
}

// hourStart returns the start of the first of the intervals that make the last hour: the current
// one is the last of them.
func (i intervals) hourStart(at event.ID) int64 {
	return i.startOf(at.Milli() - hourMS + i.seconds()*1000)
}

// rowDue returns the id at which a row expires.
func (i intervals) rowDue(start int64) event.ID {
	return event.ID((start+i.seconds())*int64(time.Second)) + event.ID(i.late)
}

// closedAt returns the id from which the interval that begins at start is closed.
func (i intervals) closedAt(start int64) event.ID {
	return event.ID((start+i.seconds())*int64(time.Second)) + event.ID(closeAfter)
}

// agentExpiry returns the id at which an agent without an event expires. A logged-out
// agent is kept while late events about the time before the logout may arrive, and longer
// where it is a member of queues: platforms do not repeat that at the next login.
func (i intervals) agentExpiry(a *agent) event.ID {
	if a.isLoggedOut() && len(a.Queues) == 0 {
		return event.ID(a.Seen) + event.ID(i.late)
	}
	return event.ID(a.Seen) + event.ID(agentExpiryAge)
}

// dueOf returns the id at which an entry is due without an event.
func (i intervals) dueOf(e entry) event.ID {
	switch e := e.(type) {
	case *call:
		switch {
		case e.Abandoned:
			return event.ID(e.Seen) + event.ID(i.late)
		case e.EndedMS != 0:
			return event.ID(e.Seen) + event.ID(endedCallExpiry)
		}

		return event.ID(e.Seen) + event.ID(callExpiry)
	case *agent:
		if e.isLoggedOut() {
			return i.agentExpiry(e)
		}
		return min(i.agentExpiry(e), i.closedAt(i.startOf(e.CreditedMS)))
	case *openInterval:
		return i.closedAt(e.key.start)
	case *alert:
		if e.EndedMS != 0 {
			return event.ID(e.EndedMS)*millisec + event.ID(i.late)
		}
		return never
	case *feed:
		return e.Seen + event.ID(feedAge)
	}

	return i.rowDue(e.commonHeader().key.start)
}
