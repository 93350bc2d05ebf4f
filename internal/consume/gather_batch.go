package consume

import (
	"context"
	"time"

	"trunkline/internal/kafka"
)

// Limits bound a batch.
type Limits struct {
	Records int           // about
	Bytes   int           // of values, about
	Time    time.Duration // for which a batch waits for further records
	Linger  bool          // it waits also for records that the log does not have yet
}

// BatchContents tells which records a batch has.
type BatchContents struct {
	Oldest, newest time.Time // times of the first and the last record
	firstEpoch     int32     // leader epoch of the first record
	records, bytes int       // their number, and the bytes of their values
}

// Gather waits for a record and adds those that come within the limits. If an error lasts, the next call returns it.
func (l Limits) Gather(ctx context.Context, source kafka.Source, add func(*kafka.Record)) (f BatchContents, err error) {
	if err := f.read(ctx, source, add); err != nil {
		return f, err
	}

	// After the first record: the wait for it has no limit.
	ctx, cancel := context.WithTimeout(ctx, l.Time)
	defer cancel()

	for f.records < l.Records && f.bytes < l.Bytes && (l.Linger || source.Lag() > 0) {
		if err := f.read(ctx, source, add); err != nil {
			break
		}
	}

	return f, nil
}

func (f *BatchContents) read(ctx context.Context, source kafka.Source, add func(*kafka.Record)) error {
	records, err := source.Read(ctx)
	for i := range records {
		r := &records[i]
		if f.records == 0 {
			f.Oldest, f.firstEpoch = r.Time, r.LeaderEpoch
		}

		f.newest = r.Time
		f.records++
		f.bytes += len(r.Value)
		add(r)
	}

	return err
}
