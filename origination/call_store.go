package origination

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"trunkline/internal/fault"
)

// callStore holds the open calls of this process. A change is made here first, is written to the call's
// row next (docs/decisions/0008), and is then published on the channel. A call is removed when it has
// ended and all of its steps are stored and published, or when another node has taken it over.
type callStore struct {
	maxCalls  int
	rows      rows
	publisher Publisher
	metrics   *metrics
	log       *slog.Logger
	onEnded   func(orderID string) // called at least once for a call that has ended, or that nobody reports the end of
	onLost    func(orderID string) // called for a call that another node has taken over

	ctx            context.Context // ends the goroutines of the calls
	cancel         context.CancelFunc
	workers        sync.WaitGroup
	storeWarning   rate.Sometimes // while the database or Kafka is away, every call fails again and again
	publishWarning rate.Sometimes

	mu     sync.Mutex
	byID   map[string]*storeEntry // by Order.ID
	byCall map[string]*storeEntry // by origination_call_id; by Order.ID until that is known
	early  earlyProgress
}

func newCallStore(maxCalls int, rows rows, publisher Publisher, log *slog.Logger) *callStore {
	ctx, cancel := context.WithCancel(context.Background())
	return &callStore{
		maxCalls: maxCalls, rows: rows, publisher: publisher, log: log,
		onEnded: func(string) {}, onLost: func(string) {},
		ctx: ctx, cancel: cancel,
		storeWarning: rate.Sometimes{Interval: warnInterval}, publishWarning: rate.Sometimes{Interval: warnInterval},
		byID: map[string]*storeEntry{}, byCall: map[string]*storeEntry{}, early: earlyProgress{},
	}
}

// close ends the goroutines of the calls, each after the statement that it runs, and waits for them.
func (s *callStore) close() {
	s.mu.Lock()
	s.cancel() // under the lock, as wake: it starts none after this
	s.mu.Unlock()
	s.workers.Wait()
}

func (s *callStore) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// settled reports whether all changes are stored and all stored steps are published.
func (s *callStore) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byID {
		if e.toStore() || e.toPublish() {
			return false
		}
	}
	return true
}

// create adds a call that is about to be placed and stores it. The error is fault.Unavailable, also at
// maxCalls and after close. The row may exist in spite of an error: delete removes both.
func (s *callStore) create(ctx context.Context, order Order, now time.Time) error {
	e := &storeEntry{row: row{Order: order, Created: now, Updated: now, Live: true}}
	e.Call.ID = order.ID
	e.advance(Progress{State: Accepted, At: now})
	e.changes++

	if err := s.add(e); err != nil {
		return err
	}
	if err := s.write(ctx, e); err != nil {
		return err
	}

	return s.checkOpen() // nobody would follow the call
}

func (s *callStore) add(e *storeEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkOpen(); err != nil {
		return err
	}
	if len(s.byID) >= s.maxCalls {
		return fault.Unavailable(nil, time.Second, "Too many calls are open")
	}
	s.byID[e.Order.ID], s.byCall[e.Call.ID] = e, e
	return nil
}

// checkOpen returns fault.Unavailable after close.
func (s *callStore) checkOpen() error {
	if s.ctx.Err() != nil {
		return fault.Unavailable(nil, time.Second, "Shutting down")
	}
	return nil
}

// confirm records that the platform has accepted the order, and stores the id that the platform gave the
// call. After an error the store goes on trying. A call without an id is not followed further.
func (s *callStore) confirm(ctx context.Context, orderID string, as Placed) error {
	e := s.accept(orderID, as)
	if e == nil || as.CallID == orderID {
		return nil
	}
	return s.write(ctx, e)
}

// accept makes the changes of confirm. It returns nil for a call that another node has taken over
// meanwhile.
func (s *callStore) accept(orderID string, as Placed) *storeEntry {
	s.mu.Lock()
	defer s.mu.Unlock()

	e := s.byID[orderID]
	if e == nil {
		return nil
	}

	s.metrics.placed.Inc()
	e.placed = true
	if as.ClickToCallID != "" {
		e.ClickToCallID = as.ClickToCallID
		e.changes++
	}
	if as.CallID != orderID {
		delete(s.byCall, e.Call.ID)
		e.Call.ID = as.CallID
		e.changes++
	}

	if as.CallID == "" {
		e.Live = false
		// Nobody will report its end: it gives its place back here.
		s.onEnded(orderID)
	} else {
		s.byCall[as.CallID] = e
		// The driver may have reported before the platform's answer told the call's id.
		for _, step := range s.early.take(as.CallID) {
			s.apply(e, step)
		}
	}

	s.wake(e)
	return e
}

// delete removes a call that the platform has not accepted, or that was not stored.
func (s *callStore) delete(orderID string) {
	s.onEnded(orderID)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[orderID]
	if e != nil {
		delete(s.byCall, e.Call.ID)
		e.deleting = true
		e.changes++
		s.wake(e)
	}
}

// report applies a step that the driver reports. Steps of a call whose id is not known yet are kept for
// confirm.
func (s *callStore) report(p Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[p.CallID]
	if e == nil {
		s.early.add(p, time.Now())
		return
	}
	s.apply(e, p)
	s.wake(e)
}

// apply advances the call. s.mu is held.
func (s *callStore) apply(e *storeEntry, p Progress) {
	if !e.Call.advance(p) {
		return
	}

	last := e.History[len(e.History)-1]
	e.Updated = last.At.Time
	e.changes++
	s.metrics.countStep(&e.Call)

	if e.State == Ended {
		s.onEnded(e.Order.ID)
	}
}

// addAdopted adds calls that another process, or an earlier run of this one, left in the database. The caller has
// acquired their slots.
func (s *callStore) addAdopted(taken []row) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := range taken {
		e := &storeEntry{row: taken[i], placed: true, storedSteps: len(taken[i].History)}
		// What this node had of it before it lost it is out of date.
		lost := s.byID[e.Order.ID]
		if lost != nil {
			s.remove(lost)
		}

		s.byID[e.Order.ID], s.byCall[e.Call.ID] = e, e
		// The other node may have died after it had published the last step, before it wrote that the
		// call is over.
		e.endOncePublished()
		s.wake(e)
	}
}

// listStored returns the open calls that are in the database.
func (s *callStore) listStored() (open []*storeEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byID {
		if e.storedSteps > 0 && e.isLive() {
			open = append(open, e)
		}
	}
	return open
}

// dropLost removes those of the calls that are not among the node's in the database, which was read after the calls
// were listed. It returns their number.
func (s *callStore) dropLost(listed []*storeEntry, own map[string]bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range listed {
		// One that has ended meanwhile may have left the database by this node's own statement.
		if e.isLive() && !own[e.Order.ID] {
			s.lose(e)
			n++
		}
	}
	return n
}

// lose removes a call that another node has taken over. s.mu is held.
func (s *callStore) lose(e *storeEntry) {
	s.onLost(e.Order.ID)
	s.remove(e)
}

// remove removes a call. s.mu is held.
func (s *callStore) remove(e *storeEntry) {
	e.removed = true
	if s.byID[e.Order.ID] == e {
		delete(s.byID, e.Order.ID)
	}
	if s.byCall[e.Call.ID] == e {
		delete(s.byCall, e.Call.ID)
	}
}

// isOpen reports whether this process has the call and it has not ended.
func (s *callStore) isOpen(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	return e != nil && e.State != Ended
}

// beginCancel marks the call as being cancelled. It returns false if it was marked before or is not
// open here.
func (s *callStore) beginCancel(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	if e == nil || e.cancelSent || e.State == Ended {
		return false
	}
	e.cancelSent = true
	return true
}

// undoCancel removes the mark of beginCancel.
func (s *callStore) undoCancel(callID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	if e != nil {
		e.cancelSent = false
	}
}

// expireEarly drops early progress whose call was never confirmed.
func (s *callStore) expireEarly(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early.expire(now)
}
