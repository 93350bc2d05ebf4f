package normalizer

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// takeOver finds the raw record to continue with: the one after the newest position in
// the normalized topic. The group's commit only records up to where dead letters were
// written, since the normalized topic does not include them: the commit may be ahead
// of that topic (which was truncated) or behind it (commits are flushed once a
// second). Records between the newest position and the commit are normalized again,
// but their dead letters are not written again.
func (w *partitionWorker) takeOver(ctx context.Context) error {
	err := w.retry(ctx, "taking over", func() error {
		newest, err := w.findNewestEvent(ctx)
		if err != nil {
			return err
		}
		return w.resumeAfterEvent(ctx, newest)
	})
	return w.handleGap(ctx, err)
}

// normalizedRef holds the references of a normalized record to its raw record.
type normalizedRef struct {
	position event.Position
	id       event.ID
	nextRaw  kafka.LogPosition // after the raw record
}

// resumeAfterEvent sets the worker to continue after the raw record of newest; nil means
// that there is no normalized record. It returns *kafka.GapError if the raw log does
// not continue there.
func (w *partitionWorker) resumeAfterEvent(ctx context.Context, newest *normalizedRef) error {
	topicID, err := w.deps.LogReader.TopicID(ctx, w.rawTopic)
	if err != nil {
		return err
	}

	first, next, err := w.deps.LogReader.Offsets(ctx, w.rawTopic, w.Partition)
	if err != nil {
		return err
	}

	w.next = kafka.LogPosition{TopicID: topicID, Offset: first, LeaderEpoch: kafka.UnknownEpoch}
	w.prevID, w.generation, w.deadLettersWrittenBefore = 0, 0, 0
	committed, ok := w.Committed()
	// A commit beyond the end of the log is of a log that was cut.
	if ok && committed <= next {
		w.deadLettersWrittenBefore = committed
	}

	if newest != nil {
		w.next, w.prevID, w.generation = newest.nextRaw, newest.id, newest.position.Generation
		if w.next.TopicID.IsZero() {
			w.next.TopicID = topicID
		}
		return w.deps.LogReader.CheckPosition(ctx, w.rawTopic, w.Partition, newest.nextRaw)
	}

	_, written, err := w.deps.LogReader.Offsets(ctx, w.normalizedTopic, w.Partition)
	if err != nil {
		return err
	}

	if ok && (committed < first || written > 0) { // retention has deleted all normalized records
		w.next.Offset = committed
	}

	return w.deps.LogReader.CheckPosition(ctx, w.rawTopic, w.Partition, w.next)
}

// Number of records at the end of a normalized partition that are searched for its
// newest position: always, while the newest one is behind the commit (overlapping
// normalizers write out of order), and while none is found.
const (
	firstSearchRecords   = 512
	overlapSearchRecords = 16 * firstSearchRecords
	foreignSearchRecords = 256 * firstSearchRecords
)

// findNewestEvent finds the newest position at the end of the normalized partition.
// Usually the last record has it. A normalizer that stopped late may have written
// older ones after it; a record may be damaged or written by another program. It
// returns nil if there is none.
func (w *partitionWorker) findNewestEvent(ctx context.Context) (*normalizedRef, error) {
	first, end, err := w.deps.LogReader.Offsets(ctx, w.normalizedTopic, w.Partition)
	if err != nil {
		return nil, err
	}

	committed, _ := w.Committed()
	var newest *normalizedRef
	var parseErr error

	to := end
	for size := int64(firstSearchRecords); to > first; size *= 4 {
		from := max(first, end-size)
		err := w.deps.LogReader.Scan(ctx, w.normalizedTopic, w.Partition, from, to, func(r *kafka.Record) {
			found, err := w.readNormalized(r)
			if err != nil {
				parseErr = fmt.Errorf("offset %d: %w", r.Offset, err)
			} else if newest == nil || found.position.Compare(newest.position) > 0 {
				newest = found
			}
		})
		if err != nil {
			return nil, err
		}

		to = from
		if newest != nil && (newest.nextRaw.Offset >= committed || end-to >= overlapSearchRecords) ||
			end-to >= foreignSearchRecords {
			break
		}
	}

	if parseErr != nil {
		w.log.Error("records of another writer in the normalized topic", "topic", w.normalizedTopic,
			"partition", w.Partition, "error", parseErr)
	}

	return newest, nil
}

// readNormalized reads the references of a normalized record to its raw record.
func (w *partitionWorker) readNormalized(r *kafka.Record) (*normalizedRef, error) {
	position, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
	if err != nil {
		return nil, err
	}

	if position.Partition != w.Partition {
		return nil, fmt.Errorf("it comes from partition %d", position.Partition)
	}

	n := &normalizedRef{position: position,
		nextRaw: kafka.LogPosition{Offset: position.Offset + 1, LeaderEpoch: kafka.UnknownEpoch}}
	log := r.Header(event.HeaderSourceLog)
	if log != nil { // older records do not have it
		n.nextRaw.TopicID, n.nextRaw.LeaderEpoch, err = parseSourceLog(string(log))
		if err != nil {
			return nil, err
		}
	}

	if w.hasEventIDs {
		n.id, err = event.MessageID(r.Value)
	}

	return n, err
}

// appendSourceLog appends the value of event.HeaderSourceLog.
func appendSourceLog(dst []byte, id kafka.TopicID, epoch int32) []byte {
	dst = append(dst, id.String()...)
	dst = append(dst, '/')
	return strconv.AppendInt(dst, int64(epoch), 10)
}

func parseSourceLog(s string) (kafka.TopicID, int32, error) {
	name, digits, _ := strings.Cut(s, "/")
	id, err := kafka.ParseTopicID(name)
	if err != nil {
		return id, 0, fmt.Errorf("reading %s: %w", event.HeaderSourceLog, err)
	}

	epoch, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return id, 0, fmt.Errorf("reading %s: %w", event.HeaderSourceLog, err)
	}

	return id, int32(epoch), nil
}
