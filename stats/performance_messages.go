package stats

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

const (
	// source is the source of the records that this role produces to cc.raw.
	source = "stats"
	// messageAge is the time after the end of an interval in which its messages are still
	// produced. It is less than the 24 hours for which the normalizer keeps the
	// identities of messages, so that a repeated fold produces no message twice.
	messageAge = 23 * time.Hour
	// overdueAfter is the time for which a partition waits for an event that triggers its due
	// messages.
	overdueAfter = 2 * time.Second
)

// writeMessages produces AGENT_PERFORMANCE messages to the corresponding partition of
// cc.raw. The normalizer drops repeated ones. Messages of deleted accounts are
// omitted, since they would become dead letters.
func (w *partitionWorker) writeMessages(ctx context.Context, messages ...Performance) error {
	records := make([]kafka.Record, 0, len(messages))
	for _, m := range messages {
		end := time.Unix(int64(m.Identity.Number+1)*w.fold.table.intervals.seconds(), 0)
		if time.Since(end) > messageAge || !w.accountExists(ctx, m.Account) {
			continue
		}
		records = append(records, w.newRawRecord(m.Account, event.FormatPerformance, m.Row, m.Identity))
	}

	if err := w.writeRaw(ctx, records); err != nil {
		return err
	}

	w.metrics.messages.Add(float64(len(records)))
	return nil
}

// accountExists reports whether an account exists, true if that is not known.
func (w *partitionWorker) accountExists(ctx context.Context, account string) bool {
	exists, err := w.deps.Accounts.Exists(ctx, account)
	return err != nil || exists
}

// newRawRecord returns a record for the corresponding partition of cc.raw.
func (w *partitionWorker) newRawRecord(account, format string, value []byte, identity event.Identity) kafka.Record {
	r := kafka.Record{Topic: event.TopicRaw, Partition: w.partition, Key: []byte(account), Value: value,
		Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte(format)},
			{Key: event.HeaderSource, Value: []byte(source)},
		}}
	if identity.Valid() {
		r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderIdentity, Value: identity.Append(nil)})
	}
	return r
}

func (w *partitionWorker) writeRaw(ctx context.Context, records []kafka.Record) error {
	if len(records) == 0 {
		return nil
	}
	return w.retry(ctx, "writing messages", func() error { return w.deps.Producer.Produce(ctx, records...) })
}

// overdueAt returns the time of the next check for messages that no event has
// triggered.
func (w *partitionWorker) overdueAt(now time.Time) time.Time {
	const after = closeAfter + overdueAfter
	return now.Add(-after).Truncate(w.rules.Interval).Add(w.rules.Interval + after)
}

// lastOverdueMessage records the last message that writeOverdue has produced since an event.
type lastOverdueMessage struct {
	last  event.ID // the last folded event
	entry *header  // the entry of the message; nil: none
}

// writeOverdue produces the first due message in a partition without events. The
// message returns as an event, which triggers the next ones. Its row is what the fold
// would contain after any event now: idle is when the end of the log was last reached.
// While no message returns (the account is deleted, or the normalizer is down) each
// call produces the next message.
func (w *partitionWorker) writeOverdue(ctx context.Context, idle time.Time) error {
	if idle.IsZero() {
		return nil
	}

	// An event of before may still be on its way to this partition for overdueAfter.
	dueBefore, last := event.FirstID(idle.Add(-overdueAfter), w.partition), w.fold.Last()
	if last >= dueBefore {
		return nil
	}
	// An event has come: what it did not trigger is looked for from the beginning.
	if w.overdue.last != last {
		w.overdue = lastOverdueMessage{last: last}
	}

	e := w.fold.performances.nextOverdue(dueBefore, w.overdue.entry)
	if e == nil {
		return nil
	}

	// A copy: the fold changes the header's due when the message's event comes.
	header := *e.commonHeader()
	w.overdue.entry = &header
	return w.writeMessages(ctx, w.fold.performances.preview(e))
}
