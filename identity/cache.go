package identity

import "sync"

// cache is a map of at most limit entries; a put into a full cache deletes all others.
// It is safe for concurrent use.
type cache[K comparable, V any] struct {
	limit int

	mu  sync.Mutex
	all map[K]V
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	return &cache[K, V]{limit: limit, all: make(map[K]V)}
}

func (c *cache[K, V]) find(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.all[key]
	return value, ok
}

func (c *cache[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= c.limit {
		clear(c.all)
	}
	c.all[key] = value
}

func (c *cache[K, V]) delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, key)
}
