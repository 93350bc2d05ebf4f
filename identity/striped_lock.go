package identity

import (
	"hash/maphash"
	"sync"
)

// stripedLock is a fixed set of locks; a key's hash selects its lock.
type stripedLock struct {
	once  sync.Once
	seed  maphash.Seed
	locks [256]sync.Mutex
}

// lock locks a key and returns the function that unlocks it.
func (l *stripedLock) lock(key string) (unlock func()) {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	mu := &l.locks[maphash.String(l.seed, key)%uint64(len(l.locks))]
	mu.Lock()
	return mu.Unlock
}
