package load

import "crypto/tls"

// subscriber is one subscriber, with one connection after another. Its socketReader's lock guards its fields, except
// the constant ones.
type subscriber struct {
	slot    int // its index in Load.bySlot
	group   *Group
	stalled bool       // does not read
	checks  []sequence // one for each stream of the group

	open             bool
	resumed          bool  // this connection is not its first
	connects         int32 // counts connections, to recognise a late wake-up of the previous one
	fd               int
	tls              *tls.Conn     // nil: plain
	transport        *tlsTransport // transport below tls
	partial          []byte        // beginning of an incomplete frame
	message          []byte        // beginning of a fragmented message
	gotProbe         bool          // has received a probe
	resumeFrom       []byte        // last id or cursor, from which the next connection resumes
	resumeFromCursor bool          // resumeFrom is a cursor
}

// maxIdleBufferBytes is the largest capacity, in bytes, that an empty buffer keeps.
const maxIdleBufferBytes = 4 << 10

// keepPartial stores the beginning of a frame until the rest arrives.
func (c *subscriber) keepPartial(rest []byte) {
	if len(rest) == 0 && cap(c.partial) > maxIdleBufferBytes {
		c.partial = nil
		return
	}
	c.partial = append(c.partial[:0], rest...)
}

// checkEvent checks one event of the run.
func (c *subscriber) checkEvent(s Stamp, resume Resume, t *Tally) {
	i := s.Stream - c.group.First
	if i < 0 || i >= len(c.checks) {
		t.Foreign++ // of an account that this subscriber has not requested
		return
	}
	if s.Seq == 0 {
		c.gotProbe = true
		return
	}

	t.Deliveries++
	arrival, missing := c.checks[i].observe(s.Seq)
	t.Lost += missing

	switch {
	case arrival == arrivedLate:
		t.Disordered++
	case arrival == arrivedAgain && c.mayRepeat(i, s.Seq, resume):
		t.Repeated++
	case arrival == arrivedAgain:
		t.Duplicated++
	}
}

// mayRepeat reports whether a repeat of a number is allowed after a resume: by id if accounts may
// be in several partitions, by cursor for the events after the cursor.
func (c *subscriber) mayRepeat(stream int, n uint64, resume Resume) bool {
	switch {
	case !c.resumed:
		return false
	case resume == ResumeByCursor:
		return n > c.checks[stream].covered
	default:
		return len(c.checks) > 1
	}
}

// recordCursor records that a cursor covers all events of this connection so far.
func (c *subscriber) recordCursor(cursor []byte) {
	c.resumeFrom = append(c.resumeFrom[:0], cursor...)
	c.resumeFromCursor = true
	for i := range c.checks {
		c.checks[i].covered = c.checks[i].last
	}
}

// resetToCursor records that a new connection continues at the last cursor.
func (c *subscriber) resetToCursor() {
	c.resumed = true
	for i := range c.checks {
		c.checks[i].last = c.checks[i].covered
	}
}

// recordID records the last id as the position to resume from, unless there is a cursor, which is
// more precise.
func (c *subscriber) recordID(id []byte) {
	if !c.resumeFromCursor {
		c.resumeFrom = append(c.resumeFrom[:0], id...)
	}
}
