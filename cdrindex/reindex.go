package cdrindex

import (
	"context"
	"fmt"

	"trunkline/event"
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
func (x *Index) Reindex(ctx context.Context, topics kafka.Log, report func(Progress)) (Progress, error) {
	r := reindexing{Index: x, topics: topics, report: report}
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
	topics   kafka.Log
	report   func(Progress)
	progress Progress
}

// offsetRange is the part of a partition to read: from first to before end.
type offsetRange struct{ first, end int64 }

func (r *reindexing) listRanges(ctx context.Context) ([]offsetRange, error) {
	n, err := r.topics.Partitions(ctx, event.TopicCDR)
	if err != nil {
		return nil, err
	}

	ranges := make([]offsetRange, n)
	r.progress.Partitions = n
	for i := range ranges {
		s := &ranges[i]
		s.first, s.end, err = r.topics.Offsets(ctx, event.TopicCDR, i)
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
	// The generation that the indexer counts: positions of both compare.
	at, _, err := r.positions.Find(ctx, r.db, partition)
	if err != nil {
		return err
	}

	for offset := s.first; offset < s.end; {
		indexed, err := r.indexRange(ctx, partition, offset, s.end, at.Generation)
		if err == nil {
			return nil
		}

		gap, ok := kafka.PassableGap(err)
		// A gap that does not move on would be read for ever.
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
	source := r.topics.Read(
		kafka.ReaderConfig{Topic: event.TopicCDR, Partition: partition, From: kafka.AtOffset(offset)})
	defer source.Close()

	records := &recordBatch{Index: r.Index}
	for offset < end {
		records.Reset()
		_, err := limits.Gather(ctx, source, func(r *kafka.Record) { records.Add(r, generation) })
		if err != nil {
			return offset, err
		}

		result, err := r.apply(ctx, batch{entries: records.entries, overwrite: true})
		if err != nil {
			return offset, err
		}

		r.progress.Rows += int64(result.rows)
		r.progress.Invalid += int64(records.invalid)
		r.reportProgress(min(source.Position().Offset, end) - offset)
		offset = source.Position().Offset
	}

	return offset, nil
}

func (r *reindexing) reportProgress(offsets int64) {
	r.progress.Done += offsets
	if r.report != nil && offsets > 0 {
		r.report(r.progress)
	}
}
