package kazoo

import "sync"

// digestSet is the set of the digests of the last prefetch messages that Kafka has. RabbitMQ
// redelivers no others.
type digestSet struct {
	mu    sync.Mutex
	ring  [prefetch]uint64
	next  int            // index in ring
	count map[uint64]int // how often each digest is in ring
}

func (r *digestSet) add(digest uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.count == nil {
		r.count = make(map[uint64]int, prefetch)
	}

	old := r.ring[r.next]
	// Equal messages may be in the ring twice.
	if r.count[old] > 1 {
		r.count[old]--
	} else {
		delete(r.count, old)
	}

	r.ring[r.next] = digest
	r.next = (r.next + 1) % len(r.ring)
	r.count[digest]++
}

func (r *digestSet) contains(digest uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[digest] > 0
}
