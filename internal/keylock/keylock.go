// Package keylock has a lock for every key, which costs memory only while somebody holds it or waits for it.
// No goroutines.
package keylock

import (
	"context"
	"sync"
)

// Locks are locks by key. The zero value is ready. They are safe for concurrent use.
type Locks struct {
	mu    sync.Mutex
	locks map[string]*lockEntry
}

type lockEntry struct {
	held  chan struct{} // full while somebody holds the lock
	users int           // who hold it or wait for it; guarded by Locks.mu
}

// Lock waits for the lock of a key. unlock must be called once. The error is that of ctx, if it ends before.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.locks[key]
	if k == nil {
		k = &lockEntry{held: make(chan struct{}, 1)}
		if l.locks == nil {
			l.locks = map[string]*lockEntry{}
		}
		l.locks[key] = k
	}

	// Counted before the wait: an entry with users stays in the map, so that all of a key meet at one.
	k.users++
	l.mu.Unlock()

	select {
	case k.held <- struct{}{}:
		return func() {
			<-k.held
			l.releaseEntry(key, k)
		}, nil

	case <-ctx.Done():
		l.releaseEntry(key, k)
		return nil, ctx.Err()
	}
}

func (l *Locks) releaseEntry(key string, k *lockEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.users--
	if k.users == 0 {
		delete(l.locks, key)
	}
}
