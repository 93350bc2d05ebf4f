package loadtest

import "crypto/tls"

// conn is one subscriber. Its worker's lock guards its fields, except the constant ones.
type conn struct {
	slot    int
	group   *Group
	stalled bool       // does not read
	checks  []sequence // one for each stream of the group

	open    bool
	resumed bool
	visit   int32 // counts connections, to recognise a late wake-up of the previous one
	fd      int
	tls     *tls.Conn // nil: plain
	wire    *wire     // transport below tls
	partial []byte    // beginning of an incomplete frame
	message []byte    // beginning of a fragmented message
	proven  bool      // has received a probe
	since   []byte    // last id or cursor, from which the next connection resumes
	cursor  bool      // since is a cursor
}

// maxKept is the largest capacity, in bytes, that an empty buffer keeps.
const maxKept = 4 << 10

// keep stores the beginning of a frame until the rest arrives.
func (c *conn) keep(rest []byte) {
	if len(rest) == 0 && cap(c.partial) > maxKept {
		c.partial = nil
		return
	}
	c.partial = append(c.partial[:0], rest...)
}

// check checks one event of the run.
func (c *conn) check(s Stamp, resume Resume, t *Tally) {
	i := s.Stream - c.group.First
	if i < 0 || i >= len(c.checks) {
		t.Foreign++ // of an account that this subscriber has not requested
		return
	}
	if s.Seq == 0 {
		c.proven = true
		return
	}
	t.Deliveries++
	arrival, missing := c.checks[i].see(s.Seq)
	t.Lost += missing
	switch {
	case arrival == late:
		t.Disordered++
	case arrival == again && c.mayRepeat(i, s.Seq, resume):
		t.Repeated++
	case arrival == again:
		t.Duplicated++
	}
}

// mayRepeat reports whether a repeat of a number is allowed after a resume: by id if accounts may
// be in several partitions, by cursor for the events after the cursor.
func (c *conn) mayRepeat(stream int, n uint64, resume Resume) bool {
	switch {
	case !c.resumed:
		return false
	case resume == ByCursor:
		return n > c.checks[stream].covered
	default:
		return len(c.checks) > 1
	}
}

// cover records that a cursor covers all events of this connection so far.
func (c *conn) cover(cursor []byte) {
	c.since = append(c.since[:0], cursor...)
	c.cursor = true
	for i := range c.checks {
		c.checks[i].covered = c.checks[i].last
	}
}

// resume records that a new connection continues at the last cursor.
func (c *conn) resume() {
	c.resumed = true
	for i := range c.checks {
		c.checks[i].last = c.checks[i].covered
	}
}

// recordID records the last id as the position to resume from, unless there is a cursor, which is
// more precise.
func (c *conn) recordID(id []byte) {
	if !c.cursor {
		c.since = append(c.since[:0], id...)
	}
}
