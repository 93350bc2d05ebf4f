package identity

import "sync"

// boundedCache is a map of at most maxEntries entries. A put into a full cache deletes all
// entries first. It is safe for concurrent use.
type boundedCache[K comparable, V any] struct {
	maxEntries int

	mu      sync.Mutex
	entries map[K]V
}

func newBoundedCache[K comparable, V any](limit int) *boundedCache[K, V] {
	return &boundedCache[K, V]{maxEntries: limit, entries: make(map[K]V)}
}

func (c *boundedCache[K, V]) find(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.entries[key]
	return value, ok
}

func (c *boundedCache[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= c.maxEntries {
		clear(c.entries)
	}
	c.entries[key] = value
}

func (c *boundedCache[K, V]) delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
