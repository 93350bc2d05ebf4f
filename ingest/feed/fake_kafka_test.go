package feed

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// fakeKafka has one partition of cc.raw and of cc.state, and a normalizer between
// them: it drops repeats by their identity and folds the facts of the rest.
type fakeKafka struct {
	mu         sync.Mutex
	away       bool            // Produce fails
	raw        []kafka.Record  // on cc.raw
	identities map[string]bool // of the raw records
	messages   []message       // what becomes of raw records that are no repeats
	repeats    int             // raw records that are
	partition  *state.Partition
	states     []kafka.Record // on cc.state
	last       event.ID       // of the last message
}

// message is a raw record as the scripted platform and resyncs write it.
type message struct {
	N         int         `json:"n"`      // the platform's number of the event, from 1
	Resync    string      `json:"resync"` // the kind of platform, of a correction; else ""
	AccountID string      `json:"account_id"`
	Timestamp float64     `json:"timestamp"`
	Facts     event.Facts `json:"facts"`
}

func newFakeKafka() *fakeKafka {
	return &fakeKafka{identities: map[string]bool{}, partition: state.NewPartition()}
}

func (k *fakeKafka) setAway(away bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = away
}

// Produce implements Producer. While Kafka is away it fails, now and then after
// some of the records.
func (k *fakeKafka) Produce(_ context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()

	n := len(records)
	if k.away {
		n = rand.IntN(min(n, 2) + 1)
	}

	for _, r := range records[:n] {
		r := *r.Clone()
		r.Offset = int64(len(k.raw))
		k.raw = append(k.raw, r)
		k.normalize(&r)
	}

	if k.away {
		return fault.Unavailable(nil, 0, "away")
	}

	return nil
}

// normalize does with a raw record what the normalizer does.
func (k *fakeKafka) normalize(r *kafka.Record) {
	defer func() {
		position := state.Position{Kind: state.PositionKind, EventID: k.last,
			SourcePosition: event.Position{Offset: r.Offset}.String()}
		k.states = append(k.states, kafka.Record{Key: []byte(state.PositionKey), Value: position.Append(nil)})
	}()

	if len(r.Key) == 0 {
		return // a dead letter
	}

	if identity := string(r.Header(event.HeaderIdentity)); k.identities[identity] {
		k.repeats++
		return
	} else {
		k.identities[identity] = true
	}

	var m message
	if err := json.Unmarshal(r.Value, &m); err != nil {
		panic(err)
	}

	k.messages = append(k.messages, m)
	k.last = max(k.last+1, event.ID(time.Now().UnixNano()))
	if m.Resync != "" { // as package format reads it
		m.Facts.Reason, m.Facts.TimestampMS = event.ReasonResync, int64(math.Round(m.Timestamp*1000))
	}

	k.partition.CompleteAndFold(
		&state.Event{ID: k.last, Account: string(r.Key), Timestamp: time.Now().Unix(),
			Source: string(r.Header(event.HeaderSource)), Facts: m.Facts})

	k.partition.Commit(func(c state.Change) {
		record := kafka.Record{Key: []byte(c.Key.String())}
		if c.Value != nil {
			record.Value = c.Value.Append(nil)
		} else {
			record.Headers = []kafka.Header{{Key: state.HeaderEventID, Value: []byte(c.EventID.String())}}
		}

		k.states = append(k.states, record)
	})
}

// topic returns the records of cc.state or, for any other name, of cc.raw.
func (k *fakeKafka) topic(name string) []kafka.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name == event.TopicState {
		return slices.Clone(k.states)
	}
	return slices.Clone(k.raw)
}

func (k *fakeKafka) Partitions(context.Context, string) (int, error) { return 1, nil }

func (k *fakeKafka) Offsets(_ context.Context, topic string, _ int) (first, next int64, err error) {
	return 0, int64(len(k.topic(topic))), nil
}

func (k *fakeKafka) ScanCompacted(_ context.Context, topic string, _ int, from int64, reset func(),
	each func(*kafka.Record)) (int64, error) {
	reset()
	all := k.topic(topic)
	for i, r := range all[from:] {
		r.Offset = from + int64(i)
		each(&r)
	}
	return int64(len(all)), nil
}

// read returns the messages so far.
func (k *fakeKafka) read() []message {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.messages)
}

// entry returns the state of an agent or call of the account acme; "" for none.
func (k *fakeKafka) entry(kind state.Kind, id string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.partition.Find(state.Key{Account: "acme", Kind: kind, ID: id})
	if e == nil {
		return ""
	}
	return strings.TrimSpace(string(e.State) + " " + strings.Join(e.Queues, ","))
}
