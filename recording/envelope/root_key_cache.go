package envelope

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
)

// RootCache caches the most recently used roots, so that a key is stretched once and not
// for every recording. Concurrent callers of the same new root share the derivation. Roots
// that leave the cache are wiped.
type RootCache struct {
	maxRoots int
	macKey   [keySize]byte // random, so that cache keys are useless outside this process

	mu       sync.Mutex
	useCount uint64 // uses of roots so far; the last one of a root is its lastUse
	roots    map[cacheKey]*cachedRoot
	deriving map[cacheKey]chan struct{} // closed when the derivation has ended, with or without an error
}

type cacheKey [digestSize]byte

type cachedRoot struct {
	root    Root
	lastUse uint64
}

// NewRootCache returns a cache of at most limit roots.
func NewRootCache(limit int) (*RootCache, error) {
	if limit < 1 {
		return nil, fmt.Errorf("a cache of %d roots", limit)
	}
	c := &RootCache{maxRoots: limit, roots: make(map[cacheKey]*cachedRoot), deriving: make(map[cacheKey]chan struct{})}
	_, err := rand.Read(c.macKey[:])
	if err != nil {
		return nil, fmt.Errorf("generating the cache's key: %w", err)
	}
	return c, nil
}

// Root is NewRoot through the cache. The caller owns the returned copy.
func (c *RootCache) Root(key, salt string, iterations uint32) (*Root, error) {
	name := c.cacheKey(key, salt, iterations)
	for {
		root, deriving, done := c.findOrStart(name)
		if root != nil {
			return root, nil
		}
		if deriving != nil {
			// Then once more: it may have failed, or have left the cache already.
			<-deriving
			continue
		}

		root, err := NewRoot(key, salt, iterations)
		c.store(name, root, done)
		return root, err
	}
}

// findOrStart returns the cached root, or a channel that is closed when another goroutine
// has derived it, or done, with which the caller must derive the root and call store.
func (c *RootCache) findOrStart(name cacheKey) (root *Root, deriving <-chan struct{}, done chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if k, ok := c.roots[name]; ok {
		c.useCount++
		k.lastUse = c.useCount
		copied := k.root
		return &copied, nil, nil
	}

	if deriving, ok := c.deriving[name]; ok {
		return nil, deriving, nil
	}

	done = make(chan struct{})
	c.deriving[name] = done
	return nil, nil, done
}

func (c *RootCache) store(name cacheKey, root *Root, done chan struct{}) {
	defer close(done)

	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.deriving, name)
	// Those who wait find nothing, and one of them tries.
	if root == nil {
		return
	}
	if len(c.roots) == c.maxRoots {
		c.evictOldest()
	}

	c.useCount++
	c.roots[name] = &cachedRoot{root: *root, lastUse: c.useCount}
}

// evictOldest removes the least recently used root. It scans all roots, because it runs
// once per derivation, which costs ten thousand times more.
func (c *RootCache) evictOldest() {
	var oldest cacheKey
	least := c.useCount + 1
	for name, k := range c.roots {
		if k.lastUse < least {
			oldest, least = name, k.lastUse
		}
	}
	c.roots[oldest].root.Wipe()
	delete(c.roots, oldest)
}

// Wipe empties the cache.
func (c *RootCache) Wipe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.roots {
		k.root.Wipe()
	}
	clear(c.roots)
}

func (c *RootCache) cacheKey(key, salt string, iterations uint32) (name cacheKey) {
	mac := hmac.New(sha256.New, c.macKey[:])
	var lengths [12]byte
	binary.BigEndian.PutUint32(lengths[:], iterations)
	binary.BigEndian.PutUint64(lengths[4:], uint64(len(key)))
	mac.Write(lengths[:])
	mac.Write([]byte(key))
	mac.Write([]byte(salt))
	mac.Sum(name[:0])
	return name
}
