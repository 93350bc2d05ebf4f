package stats

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

const (
	// alertDueAfter is how long a partition waits for an event after the time at which an alert
	// may begin or end, before it writes one.
	alertDueAfter = 100 * time.Millisecond
	// rewriteAfter is the time after which an event that has not come back is written again.
	rewriteAfter = 500 * time.Millisecond
	// rewriteFeedAfter is the same for states of feeds: their events may wait behind many others.
	rewriteFeedAfter = 10 * time.Second
	feedPollEvery    = time.Second
	// feedRepeat is the age at which the state of a feed is told again, before feedAge is over.
	feedRepeat = feedAge / 2
)

// eventAlertDue is the name, in its data, of the event that only makes time pass in a partition
// without others. Its facts have the name "other".
const eventAlertDue = "alert.due"

// alertTriggers records which trigger events a worker has written. A trigger event is written to cc.raw
// only so that it comes back as an event, with which the fold may begin or end alerts: the fold reads no
// clock and no database.
type alertTriggers struct {
	triedAt time.Time         // when an eventAlertDue was last wanted, written or not
	feeds   map[key]time.Time // the last state of each feed
}

// nextTriggerCheck returns the time of the next check for trigger events. A partition without feeds and without
// anything that an alert looks at has none: its worker is woken.
func (w *partitionWorker) nextTriggerCheck(now time.Time) time.Time {
	next := now.Add(idleInterval)
	switch {
	case w.followsFeeds():
		next = now.Add(feedPollEvery)
	// Rules come into force without an event: they are read at least this often.
	case len(w.fold.alerts.reviews) > 0:
		next = now.Add(alertConfigAge)
	}

	due := w.fold.alerts.reviews.nextDue()
	if due == never {
		return next
	}

	at := due.Time().Add(alertDueAfter)
	if at.Before(w.triggers.triedAt.Add(rewriteAfter)) {
		at = w.triggers.triedAt.Add(rewriteAfter)
	}
	if at.Before(next) {
		return at
	}

	return next
}

// writeTriggerEvents writes the events that alerts wait for: that time has passed in a partition
// without events, and that a feed is connected or no longer. Everything before them in cc.raw is
// folded before them, so an alert never begins that an event of before would have prevented. idle
// is when the end of the log was last reached.
func (w *partitionWorker) writeTriggerEvents(ctx context.Context, idle time.Time) error {
	now := time.Now()
	dueBefore := event.FirstID(now.Add(-alertDueAfter), w.partition)
	due := w.fold.alerts.reviews.nextDue()
	timePassed := due <= dueBefore && now.Sub(w.triggers.triedAt) >= rewriteAfter
	if timePassed {
		w.triggers.triedAt = now
	}
	// There are events left to read: they are what makes time pass.
	if idle.IsZero() {
		return nil
	}

	if len(w.fold.alerts.reviews) > 0 {
		if err := w.readConfigs(ctx, now); err != nil { // no event has done so
			return err
		}
	}

	records := w.feedTriggerEvents(ctx, now)
	// The end of the log was reached after the time: no event that was there before is left.
	if timePassed && idle.After(due.Time()) {
		exists := func(account string) bool { return w.accountExists(ctx, account) }
		account := w.fold.alerts.dueAccount(dueBefore, exists)
		if account != "" {
			records = append(records,
				w.newRawRecord(account, event.FormatOwn, ownEvent(eventAlertDue, account, now, ""), event.Identity{}))
		}
	}

	return w.writeRaw(ctx, records)
}

// feedTriggerEvents returns the events about feeds whose state differs from that of the fold.
func (w *partitionWorker) feedTriggerEvents(ctx context.Context, now time.Time) (records []kafka.Record) {
	states, known := w.feeds.statesOf(w.partition)
	if !known {
		return nil
	}
	if len(states) == 0 && w.fold.table.counts[kindFeed] == 0 {
		return nil
	}

	// A connected feed that is gone from the settings is told as disconnected.
	for k, e := range w.fold.table.entries {
		f, isFeed := e.(*feed)
		if isFeed && f.Connected &&
			!slices.ContainsFunc(states,
				func(s FeedState) bool { return newKey(kindFeed, s.Account, s.Name, 0) == k }) {
			states = append(states, FeedState{Account: k.account.Value(), Name: k.id.Value()})
		}
	}

	for _, s := range states {
		k := newKey(kindFeed, s.Account, s.Name, 0)
		f, told := w.fold.table.entries[k].(*feed)
		// Told again before feedAge, in which the fold would forget it.
		same := told && f.Connected == s.Connected && now.Sub(f.Seen.Time()) < feedRepeat
		if same || now.Sub(w.triggers.feeds[k]) < rewriteFeedAfter || !w.accountExists(ctx, s.Account) {
			continue
		}

		name := event.NameFeedDisconnected
		if s.Connected {
			name = event.NameFeedConnected
		}
		if w.triggers.feeds == nil {
			w.triggers.feeds = map[key]time.Time{}
		}

		w.triggers.feeds[k] = now
		records = append(records,
			w.newRawRecord(s.Account, event.FormatOwn, ownEvent(string(name), s.Account, now, s.Name),
				event.Identity{}))
	}

	return records
}

// followsFeeds reports whether the partition has or had a feed.
func (w *partitionWorker) followsFeeds() bool {
	states, _ := w.feeds.statesOf(w.partition)
	return len(states) > 0 || w.fold.table.counts[kindFeed] > 0
}

// ownEvent returns a record of format trunkline.event.
func ownEvent(name, account string, at time.Time, feed string) []byte {
	value, err := json.Marshal(struct {
		Event     string      `json:"event"`
		AccountID string      `json:"account_id"`
		Timestamp json.Number `json:"timestamp"`
		Feed      string      `json:"feed,omitempty"`
	}{name, account, secondsOf(at.UnixMilli()), feed})
	if err != nil {
		panic(err) // marshalling texts cannot fail
	}

	return value
}
