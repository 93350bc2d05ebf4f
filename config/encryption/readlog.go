package encryption

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/sqldb"
)

// readLog writes entries of reads that come at the same time together: a
// commit for each would be most of what a read costs.
type readLog struct {
	write func(context.Context, []entry) error

	mu      sync.Mutex
	waiting []loggedRead
	writing bool // a goroutine writes, and goes on until nothing waits
}

type loggedRead struct {
	entry
	done chan error // takes one
}

const (
	readsAtOnce  = 64
	readsTimeout = 30 * time.Second
)

// add returns when the entry is durable, or will not be.
func (l *readLog) add(ctx context.Context, e entry) error {
	read := loggedRead{e, make(chan error, 1)}
	l.mu.Lock()
	l.waiting = append(l.waiting, read)
	if !l.writing {
		l.writing = true
		go l.run()
	}
	l.mu.Unlock()
	select {
	case err := <-read.done:
		return err
	case <-ctx.Done():
		return sqldb.Wrap(ctx.Err(), "writing the audit log")
	}
}

func (l *readLog) run() {
	for {
		l.mu.Lock()
		n := min(len(l.waiting), readsAtOnce)
		reads := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		l.writing = n > 0
		l.mu.Unlock()
		if n == 0 {
			return
		}
		l.flush(reads)
	}
}

func (l *readLog) flush(reads []loggedRead) {
	ctx, cancel := context.WithTimeout(context.Background(), readsTimeout)
	defer cancel()
	entries := make([]entry, len(reads))
	for i, read := range reads {
		entries[i] = read.entry
	}
	err := l.write(ctx, entries)
	for _, read := range reads {
		read.done <- err
	}
}
