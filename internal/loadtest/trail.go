package loadtest

import (
	"maps"
	"sync"
	"time"
)

// Trail checks the records of a run that the readers of a topic see: each event of each
// stream once, in order, in one partition. It is safe for concurrent use; a
// partition's records must come in the order of their offsets.
type Trail struct {
	clock Clock

	mu      sync.Mutex
	stamps  stampReader
	streams []trailStream
	sources map[int]int64 // by partition: the last record's source
	counts  TrailTally
}

type trailStream struct {
	sequence
	home   int  // the partition that its events come in
	proven bool // something came
}

// TrailTally has the counts of a trail.
type TrailTally struct {
	PartitionTally
	Partitions map[int]PartitionTally
	Proven     int    // streams that something has come of
	Bytes      uint64 // of the run's records
	Latency    Histogram
}

// PartitionTally has the counts of one partition.
type PartitionTally struct {
	Records    uint64 `json:"records"`    // of the run, each once
	Missing    int64  `json:"missing"`    // events that never came
	Repeated   uint64 `json:"repeated"`   // came again from the same source record, which consumers drop
	Duplicated uint64 `json:"duplicated"` // came again otherwise
	Disordered uint64 `json:"disordered"` // came after a later one
	Strayed    uint64 `json:"strayed"`    // came in another partition than the stream's first
}

// NewTrail checks a run with so many streams.
func NewTrail(run string, streams int, clock Clock) *Trail {
	return &Trail{clock: clock, stamps: newStampReader(run), streams: make([]trailStream, streams),
		sources: map[int]int64{}, counts: TrailTally{Partitions: map[int]PartitionTally{}}}
}

// See takes the next record of a partition. source is the offset of what it
// was made from, below zero when that is not known.
func (t *Trail) See(partition int, source int64, value []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stamp, ok := t.stamps.read(value)
	if !ok || stamp.Stream >= len(t.streams) {
		return
	}
	last, known := t.sources[partition]
	twice := known && source >= 0 && source <= last
	if source >= 0 && !twice {
		t.sources[partition] = source
	}
	stream := &t.streams[stamp.Stream]
	if !stream.proven {
		stream.proven, stream.home = true, partition
		t.counts.Proven++
	}
	if stamp.Seq == 0 {
		return
	}
	seen := PartitionTally{}
	if partition != stream.home {
		seen.Strayed++
	}
	switch arrival, missing := stream.see(stamp.Seq); {
	case arrival != again:
		seen.Records++
		seen.Missing = missing
		if arrival == late {
			seen.Disordered++
		}
		t.counts.Bytes += uint64(len(value))
		t.counts.Latency.Record(t.clock.Now().Sub(time.Unix(0, stamp.At)))
	case twice:
		seen.Repeated++
	default:
		seen.Duplicated++
	}
	t.counts.count(partition, seen)
}

func (t *TrailTally) count(partition int, seen PartitionTally) {
	t.PartitionTally.add(seen)
	of := t.Partitions[partition]
	of.add(seen)
	t.Partitions[partition] = of
}

func (p *PartitionTally) add(o PartitionTally) {
	p.Records += o.Records
	p.Missing += o.Missing
	p.Repeated += o.Repeated
	p.Duplicated += o.Duplicated
	p.Disordered += o.Disordered
	p.Strayed += o.Strayed
}

// Tally returns the counts so far.
func (t *Trail) Tally() *TrailTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	tally := t.counts
	tally.Partitions = maps.Clone(tally.Partitions)
	return &tally
}

// Outstanding returns the number of events still to arrive of those that were
// published, counted per stream; gaps are not among them.
func (t *Trail) Outstanding(published []uint64) (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.streams {
		n += t.streams[i].tail(published[i])
	}
	return n
}

// Conclude returns the tally once nothing more will come: what is outstanding
// is missing in its stream's partition, or in partition -1 when nothing has
// come of the stream.
func (t *Trail) Conclude(published []uint64) *TrailTally {
	tally := t.Tally()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.streams {
		stream := &t.streams[i]
		left := stream.tail(published[i])
		if left == 0 {
			continue
		}
		home := -1
		if stream.proven {
			home = stream.home
		}
		tally.count(home, PartitionTally{Missing: int64(left)})
	}
	return tally
}
