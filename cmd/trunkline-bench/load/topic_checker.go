package load

import (
	"maps"
	"sync"
	"time"
)

// TopicChecker checks a run's records on a topic: each event of each stream once, in order, in one
// partition. It is safe for concurrent use; the records of a partition must be passed in the
// order of their offsets.
type TopicChecker struct {
	clock Clock

	mu      sync.Mutex
	stamps  stampReader
	streams []checkedStream
	sources map[int]int64 // by partition: the last record's source
	counts  TopicTally
}

type checkedStream struct {
	sequence
	firstPartition int  // partition of the stream's first event
	received       bool // an event or a probe was received
}

// TopicTally holds the counts of a TopicChecker.
type TopicTally struct {
	PartitionTally
	Partitions map[int]PartitionTally
	Proven     int    // streams with at least one event or probe
	Bytes      uint64 // of the run's records
	Latency    Histogram
}

// PartitionTally holds the counts of one partition.
type PartitionTally struct {
	Records    uint64 `json:"records"`    // of the run, without repeats
	Missing    int64  `json:"missing"`    // events not received
	Repeated   uint64 `json:"repeated"`   // received again from the same source record; consumers drop them
	Duplicated uint64 `json:"duplicated"` // received again otherwise
	Disordered uint64 `json:"disordered"` // received after a later one
	Strayed    uint64 `json:"strayed"`    // received in another partition than the stream's first
}

// NewTopicChecker returns a checker for a run with a number of streams.
func NewTopicChecker(run string, streams int, clock Clock) *TopicChecker {
	return &TopicChecker{clock: clock, stamps: newStampReader(run), streams: make([]checkedStream, streams),
		sources: map[int]int64{}, counts: TopicTally{Partitions: map[int]PartitionTally{}}}
}

// Record processes the next record of a partition. source is the offset of its raw record, negative
// if unknown.
func (t *TopicChecker) Record(partition int, source int64, value []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()

	stamp, ok := t.stamps.read(value)
	if !ok || stamp.Stream >= len(t.streams) {
		return
	}

	last, known := t.sources[partition]
	repeated := known && source >= 0 && source <= last
	if source >= 0 && !repeated {
		t.sources[partition] = source
	}

	stream := &t.streams[stamp.Stream]
	if !stream.received {
		stream.received, stream.firstPartition = true, partition
		t.counts.Proven++
	}
	if stamp.Seq == 0 {
		return
	}

	counts := PartitionTally{}
	if partition != stream.firstPartition {
		counts.Strayed++
	}

	switch arrival, missing := stream.observe(stamp.Seq); {
	case arrival != arrivedAgain:
		counts.Records++
		counts.Missing = missing
		if arrival == arrivedLate {
			counts.Disordered++
		}

		t.counts.Bytes += uint64(len(value))
		t.counts.Latency.Record(t.clock.Now().Sub(time.Unix(0, stamp.At)))
	case repeated:
		counts.Repeated++
	default:
		counts.Duplicated++
	}

	t.counts.addPartition(partition, counts)
}

func (t *TopicTally) addPartition(partition int, seen PartitionTally) {
	t.PartitionTally.merge(seen)
	tally := t.Partitions[partition]
	tally.merge(seen)
	t.Partitions[partition] = tally
}

func (p *PartitionTally) merge(o PartitionTally) {
	p.Records += o.Records
	p.Missing += o.Missing
	p.Repeated += o.Repeated
	p.Duplicated += o.Duplicated
	p.Disordered += o.Disordered
	p.Strayed += o.Strayed
}

// Tally returns the counts so far.
func (t *TopicChecker) Tally() *TopicTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	tally := t.counts
	tally.Partitions = maps.Clone(tally.Partitions)
	return &tally
}

// Outstanding returns the number of published events that were not received yet, counted per
// stream; gaps are not included.
func (t *TopicChecker) Outstanding(published []uint64) (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.streams {
		n += t.streams[i].missingAtEnd(published[i])
	}
	return n
}

// FinalTally returns the final tally: outstanding events count as missing in their stream's
// partition, or in partition -1 if nothing of the stream was received.
func (t *TopicChecker) FinalTally(published []uint64) *TopicTally {
	tally := t.Tally()
	t.mu.Lock()
	defer t.mu.Unlock()

	for i := range t.streams {
		stream := &t.streams[i]
		outstanding := stream.missingAtEnd(published[i])
		if outstanding == 0 {
			continue
		}

		home := -1
		if stream.received {
			home = stream.firstPartition
		}

		tally.addPartition(home, PartitionTally{Missing: int64(outstanding)})
	}

	return tally
}
