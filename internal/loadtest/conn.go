package loadtest

import "crypto/tls"

// conn is one subscriber. Its worker's lock guards it, but for what never
// changes.
type conn struct {
	slot    int
	group   *Group
	stalled bool       // does not read
	checks  []sequence // one for each stream of the group

	open    bool
	resumed bool
	visit   int32 // counts connections, so that a late wake-up of the last one is known
	fd      int
	tls     *tls.Conn // nil: plain
	wire    *wire     // below tls
	partial []byte    // the beginning of a frame whose end has not come
	message []byte    // the beginning of a fragmented message
	proven  bool      // has received a probe
	since   []byte    // the last id, or cursor, where the next connection goes on
	cursor  bool      // since is a cursor
}

// maxKept is the largest capacity, in bytes, that an empty buffer keeps.
const maxKept = 4 << 10

// keep stores the beginning of a frame until the rest comes.
func (c *conn) keep(rest []byte) {
	if len(rest) == 0 && cap(c.partial) > maxKept {
		c.partial = nil
		return
	}
	c.partial = append(c.partial[:0], rest...)
}

// check judges one event of the run.
func (c *conn) check(s Stamp, resume Resume, t *Tally) {
	i := s.Stream - c.group.First
	if i < 0 || i >= len(c.checks) {
		t.Foreign++ // not of an account this subscriber has asked for
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

// mayRepeat reports whether a number may come again after a resume: by id where
// accounts may lie in several partitions, by cursor what came after it.
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

// cover notes that a cursor covers what this connection has brought.
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

// goOn notes the last id as the place to go on from. It is worth less than a
// cursor.
func (c *conn) goOn(id []byte) {
	if !c.cursor {
		c.since = append(c.since[:0], id...)
	}
}
