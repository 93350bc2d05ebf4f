package loadtest

import (
	"crypto/tls"
)

// conn is one subscriber. Its worker's lock guards it, but for what never
// changes.
type conn struct {
	slot    int
	group   *Group
	stalled bool // does not read
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
}

// maxKept is what an empty buffer may keep.
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
func (c *conn) check(s Stamp, t *Tally) {
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
	case arrival == again && c.resumed && len(c.checks) > 1 && !c.group.Exact:
		t.Repeated++
	case arrival == again:
		t.Duplicated++
	}
}
