package origination

import (
	"log/slog"
	"sync"
	"time"

	"trunkline/internal/fault"
)

// callStore holds the open calls of this process. A change is made here first, is committed to the
// database next, and is then published on the channel. A call is removed when it has ended and all of
// its steps are stored and published.
//
// Changes made while a transaction is being committed are written together in the next one
// (docs/decisions/0008).
type callStore struct {
	maxCalls int
	rows     rows
	publish  Publisher
	metrics  *metrics
	log      *slog.Logger
	ended    func(orderID string) // called at least once for a call that has ended or is no longer followed

	writeSignal    chan struct{} // wakes the writer; holds at most one
	announceSignal chan struct{} // wakes the announcer; holds at most one
	mu             sync.Mutex
	byID           map[string]*entry     // by Order.ID
	byCall         map[string]*entry     // by origination_call_id; by Order.ID until that is known
	urgent         []*entry              // queued writes with a waiting caller
	dirty          []*entry              // queued writes without a waiting caller, or whose caller has been answered
	statements     []statement           // to be run in the next transaction
	announceQueue  []*entry              // queued for publication, each once
	earlyProgress  map[string]earlySteps // by a call id that is not known yet
	lostCalls      bool                  // a write found a call that another node has taken over
}

func newCallStore(maxCalls int, rows rows, publish Publisher, log *slog.Logger) *callStore {
	return &callStore{
		maxCalls: maxCalls, rows: rows, publish: publish, log: log, ended: func(string) {},
		writeSignal: make(chan struct{}, 1), announceSignal: make(chan struct{}, 1),
		byID: map[string]*entry{}, byCall: map[string]*entry{}, earlyProgress: map[string]earlySteps{},
	}
}

func (s *callStore) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// create adds a call that is about to be placed and queues its row. The error is fault.Unavailable at
// maxCalls.
func (s *callStore) create(order Order, now time.Time) (written writeResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.byID) >= s.maxCalls {
		return nil, fault.Unavailable(nil, time.Second, "Too many calls are open")
	}

	e := &entry{row: row{Order: order, Created: now, Updated: now, Live: true}, rowChanged: true}
	e.Call.ID = order.ID
	e.advance(Progress{State: Accepted, At: now})
	s.byID[order.ID], s.byCall[order.ID] = e, e

	return s.queueUrgentWrite(e), nil
}

// confirm records that the platform has accepted the order. A call without an id from the platform is
// not followed further.
func (s *callStore) confirm(orderID string, as Placed) (written writeResult) {
	s.mu.Lock()
	defer s.mu.Unlock()

	e := s.byID[orderID]
	if e == nil { // taken over by another node meanwhile
		return alreadyWritten()
	}

	s.metrics.placed.Inc()
	e.placed = true
	if as.ClickToCallID != "" {
		e.ClickToCallID, e.rowChanged = as.ClickToCallID, true
	}

	callID := as.CallID
	if callID == "" {
		delete(s.byCall, e.Call.ID)
		e.Call.ID, e.Live, e.rowChanged = "", false, true
		// Nobody will report its end: it gives its place back here.
		s.ended(orderID)
		return s.queueUrgentWrite(e)
	}

	waits := alreadyWritten()
	if callID != orderID {
		delete(s.byCall, e.Call.ID)
		e.Call.ID, e.rowChanged = callID, true
		s.byCall[callID] = e
		waits = s.queueUrgentWrite(e)
	}

	// The driver may have reported before the platform's answer told the call's id.
	for _, step := range s.earlyProgress[callID].steps {
		s.apply(e, step)
	}

	delete(s.earlyProgress, callID)
	s.queueAnnouncement(e)
	return waits
}

// delete removes a call that the platform has not accepted.
func (s *callStore) delete(orderID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[orderID]
	if e != nil {
		delete(s.byCall, e.Call.ID)
		e.deleted = true
		s.ended(orderID)
		s.queueWrite(e)
	}
}

// report applies a step that the driver reports. Steps of a call whose id is not
// known yet are kept for confirm.
func (s *callStore) report(p Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()

	e := s.byCall[p.CallID]
	if e != nil {
		s.apply(e, p)
		return
	}

	before, known := s.earlyProgress[p.CallID]
	if !before.advances(p.State) || !known && len(s.earlyProgress) >= maxEarly {
		return
	}
	if !known {
		before.since = time.Now()
	}

	before.steps = append(before.steps, p)
	s.earlyProgress[p.CallID] = before
}

// apply advances the call and queues the write. s.mu is held.
func (s *callStore) apply(e *entry, p Progress) {
	if !e.Call.advance(p) {
		return
	}

	last := e.History[len(e.History)-1]
	e.Updated = last.At.Time
	s.metrics.countStep(&e.Call)

	if e.State == Ended {
		s.ended(e.Order.ID)
	}

	s.queueWrite(e)
}

// addAdopted adds calls that another process, or an earlier run of this one, left in the database.
func (s *callStore) addAdopted(taken []row) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := range taken {
		e := &entry{row: taken[i], placed: true, stored: len(taken[i].History)}
		s.byID[e.Order.ID], s.byCall[e.Call.ID] = e, e
		// The other node died after it had published the last step, before it wrote that the call is over.
		if e.State == Ended && e.Announced == e.stored {
			e.Live, e.rowChanged = false, true
			s.queueWrite(e)
		}

		s.queueAnnouncement(e)
	}
}

// expireEarly drops early progress whose call was never confirmed.
func (s *callStore) expireEarly(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.earlyProgress {
		if now.Sub(e.since) > earlyTTL {
			delete(s.earlyProgress, id)
		}
	}
}
