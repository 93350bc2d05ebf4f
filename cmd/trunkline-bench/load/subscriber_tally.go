package load

// Tally counts what subscribers received. Stalled subscribers count in Open,
// Stalled and Closed only.
type Tally struct {
	Open       int
	Stalled    int         // subscribers that do not read, open or not
	Proven     int         // subscribers that have received a probe
	Resumed    uint64      // connections that resumed
	Closed     map[int]int // connections that the server ended, by close code
	StalledEnd int         // stalled subscribers that the server ended

	Deliveries uint64 // events of the run
	Bytes      uint64 // of their messages
	Foreign    uint64 // messages that are not of the run, or not for the subscriber
	Lost       int64  // missing now; never negative at the end
	Disordered uint64 // received after a later one
	Duplicated uint64 // received again
	Repeated   uint64 // received again after a resume that allows it: by id, over several accounts
	Misbehaved uint64 // connections closed by the client because the server violated the protocol
	Pings      uint64

	Latency Histogram // from the event's due time to reading its frame
}

// Faultless reports whether every subscriber received every event once and in order, without
// protocol violations.
func (t *Tally) Faultless() bool {
	return t.Lost == 0 && t.Disordered == 0 && t.Duplicated == 0 && t.Misbehaved == 0
}

func (t *Tally) merge(o *Tally) {
	t.Open += o.Open
	t.Stalled += o.Stalled
	t.Proven += o.Proven
	t.Resumed += o.Resumed
	t.StalledEnd += o.StalledEnd
	t.Deliveries += o.Deliveries
	t.Bytes += o.Bytes
	t.Foreign += o.Foreign
	t.Lost += o.Lost
	t.Disordered += o.Disordered
	t.Duplicated += o.Duplicated
	t.Repeated += o.Repeated
	t.Misbehaved += o.Misbehaved
	t.Pings += o.Pings
	t.Latency.Add(&o.Latency)

	for code, n := range o.Closed {
		if t.Closed == nil {
			t.Closed = map[int]int{}
		}
		t.Closed[code] += n
	}
}

func (t *Tally) countClosed(code int) {
	if t.Closed == nil {
		t.Closed = map[int]int{}
	}
	t.Closed[code]++
}
