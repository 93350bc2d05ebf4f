package stats

import (
	"iter"
	"log/slog"
	"sync"
	"time"
)

// queueMetrics exports the figures of queues as trunkline_queue_…{account,queue}:
// those of today (UTC), and the waiting calls. The first max queues have their own
// label sets; the others share one.
type queueMetrics struct {
	max int
	log *slog.Logger
	now func() time.Time

	mu         sync.Mutex
	partitions map[int]*partitionQueues
	ownLabels  map[queueID]struct{} // queues that have a label set of their own
	full       bool                 // a queue had to share, and a log line was written
}

type queueID struct{ account, queue string }

// partitionQueues holds the data of queues from one partition's fold.
type partitionQueues struct {
	days    map[queueID]queueDay
	waiting map[key]waitingCall // by the key of the call's entry
}

// queueDay holds the sums of a queue's rows of one day.
type queueDay struct {
	// Unix seconds of its start
	day                                                                                 int64
	Offered, Answered, Abandoned, AbandonedShort, AnsweredWithin, WaitMS, AbandonWaitMS int64
}

type waitingCall struct {
	queue     queueID
	enteredMS int64
}

const secondsPerDay = 24 * 60 * 60

// otherLabel is the value of the labels account and queue for queues beyond the limit.
const otherLabel = "other"

func newQueueMetrics(limit int, log *slog.Logger) *queueMetrics {
	return &queueMetrics{max: limit, log: log, now: time.Now, partitions: map[int]*partitionQueues{},
		ownLabels: map[queueID]struct{}{}}
}

// applyChanges applies the changed entries of a partition. It does nothing when the metrics
// are disabled.
func (m *queueMetrics) applyChanges(partition int, t *entryTable, changed iter.Seq[key]) {
	if m.max == 0 {
		return
	}

	today := dayOf(m.now())
	m.mu.Lock()
	defer m.mu.Unlock()

	p := m.partitions[partition]
	if p == nil {
		p = &partitionQueues{days: map[queueID]queueDay{}, waiting: map[key]waitingCall{}}
		m.partitions[partition] = p
	}

	added := map[queueID]bool{}
	for k := range changed {
		switch {
		case k.kind == kindQueue && k.start >= today:
			id := (queueID{k.account.Value(), k.id.Value()})
			if !added[id] {
				added[id], p.days[id] = true, t.queueDay(k, today)
			}
		case k.kind == kindOpenCall:
			if c, ok := t.entries[k].(*call); ok && c.AnsweredMS == 0 && c.EndedMS == 0 {
				p.waiting[k] = waitingCall{queueID{k.account.Value(), c.Queue}, c.EnteredMS}
			} else {
				delete(p.waiting, k)
			}
		}
	}
}

// drop removes a partition that was assigned to another process.
func (m *queueMetrics) drop(partition int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.partitions, partition)
}

func dayOf(t time.Time) int64 {
	seconds := t.Unix()
	return seconds - seconds%secondsPerDay
}

// queueDay sums the rows of k's queue that begin on a day.
func (t *entryTable) queueDay(k key, day int64) queueDay {
	d := queueDay{day: day}
	for k.start = day; k.start < day+secondsPerDay; k.start += t.intervals.seconds() {
		if r, ok := t.entries[k].(*QueueRow); ok {
			d.add(queueDay{0, r.Offered, r.Answered, r.Abandoned, r.AbandonedShort, r.AnsweredWithin, r.WaitMS,
				r.AbandonWaitMS})
		}
	}
	return d
}

func (d *queueDay) add(o queueDay) {
	d.Offered += o.Offered
	d.Answered += o.Answered
	d.Abandoned += o.Abandoned
	d.AbandonedShort += o.AbandonedShort
	d.AnsweredWithin += o.AnsweredWithin
	d.WaitMS += o.WaitMS
	d.AbandonWaitMS += o.AbandonWaitMS
}

// queueNow holds the exported values of a queue.
type queueNow struct {
	queueDay
	waiting   int
	enteredMS int64 // of the call that has waited longest
}

// byLabels returns the figures by label set, always including the shared one.
func (m *queueMetrics) byLabels(now time.Time) map[queueID]*queueNow {
	m.mu.Lock()
	defer m.mu.Unlock()

	queues := map[queueID]*queueNow{}
	at := func(id queueID) *queueNow {
		q := queues[id]
		if q == nil {
			q = &queueNow{}
			queues[id] = q
		}
		return q
	}

	today := dayOf(now)
	for _, p := range m.partitions {
		for id, d := range p.days {
			// A queue without calls since midnight has no row that would replace its sums.
			if d.day != today {
				delete(p.days, id)
				continue
			}
			at(id).add(d)
		}

		for _, c := range p.waiting {
			at(c.queue).addWaiting(c.enteredMS)
		}
	}

	return m.limitLabelSets(queues)
}

func (q *queueNow) addWaiting(enteredMS int64) {
	if q.waiting == 0 || enteredMS < q.enteredMS {
		q.enteredMS = enteredMS
	}
	q.waiting++
}

// limitLabelSets assigns label sets to queues. The caller holds mu.
func (m *queueMetrics) limitLabelSets(queues map[queueID]*queueNow) map[queueID]*queueNow {
	// A queue that is gone leaves its place to another; one that has a place keeps it, so that its series goes on.
	for id := range m.ownLabels {
		if queues[id] == nil {
			delete(m.ownLabels, id)
		}
	}

	other := queueID{otherLabel, otherLabel}
	shared := queues[other] // if a queue has this name
	if shared == nil {
		shared = &queueNow{}
	}

	delete(queues, other)
	for id, q := range queues {
		if _, ok := m.ownLabels[id]; ok {
			continue
		}
		if len(m.ownLabels) < m.max {
			m.ownLabels[id] = struct{}{}
			continue
		}

		if !m.full {
			m.full = true
			m.log.Warn("more queues than stats.max_label_sets: the others share one label set",
				"stats.max_label_sets", m.max)
		}

		delete(queues, id)
		shared.add(q.queueDay)
		if q.waiting > 0 {
			shared.addWaiting(q.enteredMS)
			shared.waiting += q.waiting - 1
		}
	}

	queues[other] = shared
	return queues
}
