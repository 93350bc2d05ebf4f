package fanout

import "time"

// subscriberPartitions holds the partitions of one subscriber. Writers hold index.mu (for writing)
// and the subscriber's lock; readers hold either.
type subscriberPartitions struct {
	interest  partitionSet // partitions that it follows: those whose events it receives
	isIndexed bool         // it is in the index and has references to the partitions that it follows
	// it was removed from the index, or before it was added; it has no references any more
	removed        bool
	joinRunning    bool                // a goroutine runs for pending
	partitionCount int                 // number of partitions of cc.evt when interest was chosen
	permanent      *partitionSet       // followed until it disconnects, whatever its filter needs: see pastPartitions; nil: none
	pending        map[int]pendingJoin // partitions to follow soon
	joinedStarts   []replayStart       // followed since the last takeJoined of the running replay
}

// withPermanent returns a set with the partitions that are followed until the subscriber disconnects.
func (sp *subscriberPartitions) withPermanent(set partitionSet) partitionSet {
	if sp.permanent == nil {
		return set
	}
	return set.union(*sp.permanent)
}

func (sp *subscriberPartitions) addPermanent(p int) {
	// Few subscribers have one: a set is 128 bytes.
	if sp.permanent == nil {
		sp.permanent = new(partitionSet)
	}
	sp.permanent.add(p)
}

// pendingJoin is a partition that became relevant to a connected subscriber.
type pendingJoin struct {
	from      int64     // offset to start at; math.MaxInt64: noticed alone decides
	noticedAt time.Time // start joinRewind before it, if that is earlier; zero: at the offset
}

// merge returns the join that includes the events of both.
func (j pendingJoin) merge(other pendingJoin) pendingJoin {
	if j.noticedAt.IsZero() || !other.noticedAt.IsZero() && other.noticedAt.Before(j.noticedAt) {
		j.noticedAt = other.noticedAt
	}
	j.from = min(j.from, other.from)
	return j
}

// mayFollow reports whether a subscriber follows a partition, or is about to.
func (s *subscriber) mayFollow(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, pending := s.partitions.pending[partition]
	return pending || s.partitions.interest.has(partition)
}

// follows reports whether a subscriber follows a partition.
func (s *subscriber) follows(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitions.interest.has(partition)
}
