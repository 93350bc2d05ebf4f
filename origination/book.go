package origination

import (
	"log/slog"
	"sync"
	"time"

	"trunkline/internal/fault"
)

// book is the open calls of this process: their truth is here, the database
// has it a commit later, and the channel after that. A call leaves the book
// when it has ended and everything about it is stored and announced.
type book struct {
	most    int
	rows    rows
	publish Publisher
	metrics *metrics
	log     *slog.Logger

	toWrite    chan struct{} // wakes the writer; holds at most one
	toAnnounce chan struct{} // wakes the announcer; holds at most one
	mu         sync.Mutex
	byID       map[string]*entry // by Order.ID
	byCall     map[string]*entry // by the origination_call_id handed out; Order.ID before
	urgent     []*entry          // to be written, while somebody waits for it
	dirty      []*entry          // to be written; who is not waiting any more has been
	jobs       []job             // statements of others, to be run with the next transaction
	heard      []*entry          // to be announced, each once
	early      map[string]early  // of calls not known yet
	overtaken  bool              // a write found a call that is another node's now
}

func newBook(most int, rows rows, publish Publisher, log *slog.Logger) *book {
	return &book{
		most: most, rows: rows, publish: publish, log: log,
		toWrite: make(chan struct{}, 1), toAnnounce: make(chan struct{}, 1),
		byID: map[string]*entry{}, byCall: map[string]*entry{}, early: map[string]early{},
	}
}

func (b *book) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byID)
}

// open enters a call that is about to be placed. What is sent says when it has
// been stored, or why not.
func (b *book) open(order Order, now time.Time) (written outcome, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.byID) >= b.most {
		return nil, fault.Unavailable(nil, time.Second, "Too many calls are open")
	}
	e := &entry{row: row{Order: order, Created: now, Updated: now, Live: true}, whole: true}
	e.Call.ID = order.ID
	e.take(Progress{State: Accepted, At: now})
	b.byID[order.ID], b.byCall[order.ID] = e, e
	return b.writeNow(e), nil
}

// placed says that the platform has accepted the order. Of a call that it gave
// no id nothing more can be known. What is sent says when that is stored.
func (b *book) placed(orderID string, as Placed) (written outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byID[orderID]
	if e == nil { // taken over by another node meanwhile
		return stored()
	}
	b.metrics.placed.Inc()
	e.placed = true
	if as.ClickToCallID != "" {
		e.ClickToCallID, e.whole = as.ClickToCallID, true
	}
	callID := as.CallID
	if callID == "" {
		delete(b.byCall, e.Call.ID)
		e.Call.ID, e.Live, e.whole = "", false, true
		return b.writeNow(e)
	}
	waits := stored()
	if callID != orderID {
		delete(b.byCall, e.Call.ID)
		e.Call.ID, e.whole = callID, true
		b.byCall[callID] = e
		waits = b.writeNow(e)
	}
	for _, step := range b.early[callID].steps {
		b.take(e, step)
	}
	delete(b.early, callID)
	b.announce(e)
	return waits
}

// drop takes a call back that the platform has not accepted.
func (b *book) drop(orderID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byID[orderID]; e != nil {
		delete(b.byCall, e.Call.ID)
		e.forget = true
		b.write(e)
	}
}

// report takes a step of a call.
func (b *book) report(p Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byCall[p.CallID]; e != nil {
		b.take(e, p)
		return
	}
	before, known := b.early[p.CallID]
	if !before.rises(p.State) || !known && len(b.early) >= mostEarly {
		return
	}
	if !known {
		before.since = time.Now()
	}
	before.steps = append(before.steps, p)
	b.early[p.CallID] = before
}

// take makes a step and has it written. b.mu is held.
func (b *book) take(e *entry, p Progress) {
	if !e.Call.take(p) {
		return
	}
	last := e.History[len(e.History)-1]
	e.Updated = last.At.Time
	b.metrics.stepped(&e.Call)
	b.write(e)
}

// adopt enters calls that another process, or an earlier life of this one,
// left in the database.
func (b *book) adopt(taken []row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range taken {
		e := &entry{row: taken[i], placed: true, stored: len(taken[i].History)}
		b.byID[e.Order.ID], b.byCall[e.Call.ID] = e, e
		if e.State == Ended && e.Announced == e.stored {
			e.Live, e.whole = false, true
			b.write(e)
		}
		b.announce(e)
	}
}

// sweep forgets early progress whose call never came.
func (b *book) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, e := range b.early {
		if now.Sub(e.since) > earlyLife {
			delete(b.early, id)
		}
	}
}
