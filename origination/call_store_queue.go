package origination

import (
	"context"

	"trunkline/internal/sqldb"
)

// queueWrite queues a write of the call. The caller holds s.mu.
func (s *callStore) queueWrite(e *entry) {
	if !e.writeQueued {
		e.writeQueued = true
		s.dirty = append(s.dirty, e)
		signal(s.writeSignal)
	}
}

// queueUrgentWrite queues a write of the call before those without a waiting caller. The caller holds
// s.mu.
func (s *callStore) queueUrgentWrite(e *entry) writeResult {
	written := make(chan error, 1)
	e.writeResults = append(e.writeResults, written)
	e.writeQueued = true
	s.urgent = append(s.urgent, e)
	signal(s.writeSignal)
	return written
}

// statement is SQL that is run in a transaction of the writer.
type statement struct {
	run  func(context.Context, sqldb.Runner) error
	done func(error)
}

// inNextTransaction runs a statement in the writer's next transaction, and done
// after its commit, with the error if there is one.
func (s *callStore) inNextTransaction(run func(context.Context, sqldb.Runner) error, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements = append(s.statements, statement{run, done})
	signal(s.writeSignal)
}

// queueAnnouncement queues the stored steps that have not been published. The caller holds s.mu.
func (s *callStore) queueAnnouncement(e *entry) {
	if e.placed && !e.announceQueued && !e.deleted && e.Call.ID != "" && e.Announced < e.stored {
		e.announceQueued = true
		s.announceQueue = append(s.announceQueue, e)
		signal(s.announceSignal)
	}
}

// signal adds a token to c, which holds at most one, unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pendingWrite is an entry that is being written, with its state at the start of the transaction.
type pendingWrite struct {
	*entry
	image   rowImage
	results []chan error
}

func (s *callStore) takeWrites() (batch []pendingWrite, statements []statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	statements, s.statements = s.statements, nil
	batch, s.urgent = takeQueued(batch, s.urgent)
	batch, s.dirty = takeQueued(batch, s.dirty)
	return batch, statements
}

// takeQueued moves entries from queue to batch while batch has room.
func takeQueued(batch []pendingWrite, queue []*entry) (taken []pendingWrite, left []*entry) {
	for i, e := range queue {
		if len(batch) == maxWriteBatch {
			return batch, append(queue[:0], queue[i:]...)
		}
		// An entry may be in both queues: the first of them has its write.
		if e.writeQueued {
			batch = append(batch, pendingWrite{e, rowImage{e.row, e.deleted, e.rowChanged}, e.writeResults})
			e.writeQueued, e.rowChanged, e.writeResults = false, false, nil
		}
	}

	return batch, queue[:0]
}
