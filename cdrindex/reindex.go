package cdrindex

import (
	"context"
	"fmt"

	"trunkline/internal/kafka"
)

// Progress is the progress of Reindex.
type Progress struct {
	Partition, Partitions int   // being read, of how many
	Done, Total           int64 // offsets of all partitions
	Rows                  int64 // written
	Invalid               int64 // records that are not valid rows
}

// Reindex writes the rows of all records that the topic has now, including those already
// in the index, while indexers and reports run. A row is replaced only by a record that
// is not older. The row of a call that is no longer in the topic stays: the retention of
// the index is longer than that of the topic.
func (x *Index) Reindex(ctx context.Context, topic Topic, report func(Progress)) (Progress, error) {
	r := reindexing{Index: x, topic: topic, report: report}
	ranges, err := r.listRanges(ctx)
	if err != nil {
		return r.progress, err
	}
	for partition, s := range ranges {
		r.progress.Partition = partition
		if err := r.reindexPartition(ctx, partition, s); err != nil {
			return r.progress, fmt.Errorf("reindexing partition %d: %w", partition, err)
		}
	}
	return r.progress, nil
}

type reindexing struct {
	*Index
	topic    Topic
	report   func(Progress)
	progress Progress
}

// offsetRange is the part of a partition to read: from first to before end.
type offsetRange struct{ first, end int64 }

func (r *reindexing) listRanges(ctx context.Context) ([]offsetRange, error) {
	n, err := r.topic.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	ranges := make([]offsetRange, n)
	r.progress.Partitions = n
	for i := range ranges {
		s := &ranges[i]
		s.first, s.end, err = r.topic.Offsets(ctx, i)
		if err != nil {
			return nil, err
		}
		r.progress.Total += s.end - s.first
	}
	return ranges, nil
}

// reindexPartition reindexes a partition and continues after records that retention deletes
// during the run.
func (r *reindexing) reindexPartition(ctx context.Context, partition int, s offsetRange) error {
	generation, err := r.findGeneration(ctx, partition)
	if err != nil {
		return err
	}
	for offset := s.first; offset < s.end; {
		indexed, err := r.indexRange(ctx, partition, offset, s.end, generation)
		if err == nil {
			return nil
		}
		gap, ok := kafka.PassableGap(err)
		if !ok || gap.Resume <= indexed {
			return err
		}
		offset = gap.Resume
		r.log.Error("call records lost from the cdr topic",
			"partition", partition, "wanted", indexed, "from", offset, "error", err)
		r.reportProgress(min(offset, s.end) - indexed)
	}
	return nil
}

// indexRange indexes the offsets from at to end. After an error, everything
// before indexed is in the database.
func (r *reindexing) indexRange(ctx context.Context, partition int,
	offset, end, generation int64) (indexed int64, err error) {
	reader := r.topic.Read(partition, kafka.LogPosition{Offset: offset, LeaderEpoch: kafka.UnknownEpoch})
	defer reader.Close()
	g := &batchReader{reader: reader, generation: generation, maxEntries: maxBatchRows, log: r.log}
	for offset < end {
		if err := g.readBatch(ctx); err != nil {
			return offset, err
		}
		result, err := r.apply(ctx, batch{entries: g.entries, overwrite: true})
		if err != nil {
			return offset, err
		}
		r.progress.Rows += int64(result.rows)
		r.progress.Invalid += int64(g.invalid)
		r.reportProgress(min(reader.Next(), end) - offset)
		offset = reader.Next()
	}
	return offset, nil
}

func (r *reindexing) reportProgress(offsets int64) {
	r.progress.Done += offsets
	if r.report != nil && offsets > 0 {
		r.report(r.progress)
	}
}
