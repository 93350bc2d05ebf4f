package envelope

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
)

// Roots caches the last used roots, so that a key is stretched once and not for every
// recording. Concurrent callers of the same new root share the work. Roots that leave
// the cache are wiped.
type Roots struct {
	limit int
	tag   [keySize]byte // makes the names of cached roots useless outside this process

	mu     sync.Mutex
	uses   uint64
	kept   map[rootName]*keptRoot
	making map[rootName]chan struct{} // closed when done, with or without an error
}

type rootName [digestSize]byte

type keptRoot struct {
	root Root
	used uint64
}

// NewRoots returns a cache of at most limit roots.
func NewRoots(limit int) (*Roots, error) {
	if limit < 1 {
		return nil, fmt.Errorf("a cache of %d roots", limit)
	}
	c := &Roots{limit: limit, kept: make(map[rootName]*keptRoot), making: make(map[rootName]chan struct{})}
	if _, err := rand.Read(c.tag[:]); err != nil {
		return nil, fmt.Errorf("making the cache's key: %w", err)
	}
	return c, nil
}

// Root is NewRoot through the cache. The caller owns the returned copy.
func (c *Roots) Root(key, salt string, iterations uint32) (*Root, error) {
	name := c.name(key, salt, iterations)
	for {
		root, busy, done := c.take(name)
		if root != nil {
			return root, nil
		}
		if busy != nil {
			<-busy
			continue
		}
		root, err := NewRoot(key, salt, iterations)
		c.finish(name, root, done)
		return root, err
	}
}

// take returns the cached root, or the channel of the goroutine that derives it, or a
// new channel: then the caller derives it.
func (c *Roots) take(name rootName) (root *Root, busy <-chan struct{}, mine chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.kept[name]; ok {
		c.uses++
		k.used = c.uses
		copied := k.root
		return &copied, nil, nil
	}
	if busy, ok := c.making[name]; ok {
		return nil, busy, nil
	}
	mine = make(chan struct{})
	c.making[name] = mine
	return nil, nil, mine
}

func (c *Roots) finish(name rootName, root *Root, done chan struct{}) {
	defer close(done)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.making, name)
	if root == nil {
		return
	}
	if len(c.kept) == c.limit {
		c.dropOldest()
	}
	c.uses++
	c.kept[name] = &keptRoot{root: *root, used: c.uses}
}

// dropOldest scans all roots: it runs once per stretching, which costs ten thousand
// times more.
func (c *Roots) dropOldest() {
	var oldest rootName
	least := c.uses + 1
	for name, k := range c.kept {
		if k.used < least {
			oldest, least = name, k.used
		}
	}
	c.kept[oldest].root.Wipe()
	delete(c.kept, oldest)
}

// Wipe empties the cache.
func (c *Roots) Wipe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kept {
		k.root.Wipe()
	}
	clear(c.kept)
}

func (c *Roots) name(key, salt string, iterations uint32) (name rootName) {
	mac := hmac.New(sha256.New, c.tag[:])
	var lengths [12]byte
	binary.BigEndian.PutUint32(lengths[:], iterations)
	binary.BigEndian.PutUint64(lengths[4:], uint64(len(key)))
	mac.Write(lengths[:])
	mac.Write([]byte(key))
	mac.Write([]byte(salt))
	mac.Sum(name[:0])
	return name
}
