package normalizer

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// Two normalizers work on the same partitions at once, are stopped and started
// at random, lose answers, lose commits, and see an account come into being. A
// consumer that reads the normalized topic as docs/topics.md says, dropping a
// position at or below the last one, still gets every record once, in order,
// with the only id it ever had.
func TestOverlapRestartsAndFailuresChangeNoIDAndLoseNothing(t *testing.T) {
	const partitions, each = 3, 1500
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, born := unreliableKafka(partitions, seed), new(atomic.Bool)
				accounts := accountsFunc(func(id string) (bool, error) {
					if rand.IntN(300) == 0 {
						return false, errAway
					}
					return id == "acme" || id == "late" && born.Load(), nil
				})

				for i := range partitions * each {
					k.Append(overlapRecord(i, partitions))
				}

				stops := []func(){start(newTestNormalizer(t, k, accounts, event.TopicRaw)),
					start(newTestNormalizer(t, k, accounts, event.TopicRaw))}
				for round := range 40 {
					time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
					if round == 15 {
						born.Store(true)
					}

					i := rand.IntN(2)
					stops[i]()
					stops[i] = start(newTestNormalizer(t, k, accounts, event.TopicRaw))
				}

				stopFailing(k)
				time.Sleep(time.Hour)
				for _, stop := range stops {
					stop()
				}

				for p := range partitions {
					checkPartition(t, k, p, each)
				}
			})
		})
	}
}

// overlapRecord returns the i-th record: many of one millisecond, some broken,
// some of an account that comes to be later.
func overlapRecord(i, partitions int) kafka.Record {
	at := time.UnixMilli(1_795_000_000_000 + int64(i/2000))
	account := "acme"
	switch i % 11 {
	case 3:
		account = "late"
	case 5, 6:
		account = "nobody"
	}
	return rawEvent(i%partitions, at, account)
}

// unreliableKafka fails one produce in six: before anything is written, after a
// part, or after all.
func unreliableKafka(partitions int, seed uint64) *kafkatest.Log {
	k := newFakeKafka(partitions)
	k.MaxRead = 40
	k.OnProduce = func(records []kafka.Record) (int, error) {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		switch rand.IntN(18) {
		case 0:
			return 0, errAway
		case 1:
			return len(records), errAway
		case 2:
			return rand.IntN(len(records) + 1), fmt.Errorf("seed %d: out of the blue", seed)
		}

		return len(records), nil
	}

	k.SetCommitRule(func(old, next int64) int64 { // late, lost, or of an owner before
		if rand.IntN(3) == 0 {
			return old
		}
		return next
	})

	return k
}

// stopFailing keeps the highest commit from now on.
func stopFailing(k *kafkatest.Log) {
	k.SetCommitRule(func(old, next int64) int64 { return max(old, next) })
}

func checkPartition(t *testing.T, k *kafkatest.Log, p, each int) {
	t.Helper()
	ids := make(map[int64]event.ID)     // of each position, of any writer
	owner := make(map[event.ID]int64)   // and back
	covered := make(map[int64]struct{}) // delivered, or a dead letter
	last, lastID := int64(-1), event.ID(0)

	for _, r := range k.All(event.TopicEvents, p) {
		at, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
		if err != nil {
			t.Fatal(err)
		}

		id, err := event.MessageID(r.Value)
		if err != nil {
			t.Fatal(err)
		}

		if before, ok := ids[at.Offset]; ok && before != id {
			t.Fatalf("position %v has ids %s and %s", at, before, id)
		}
		if before, ok := owner[id]; ok && before != at.Offset {
			t.Fatalf("id %s is of positions %d and %d", id, before, at.Offset)
		}

		ids[at.Offset], owner[id] = id, at.Offset
		if at.Offset <= last {
			continue // a repeat
		}
		if id <= lastID {
			t.Fatalf("id %s at %v does not rise", id, at)
		}

		last, lastID = at.Offset, id
		covered[at.Offset] = struct{}{}
	}

	for _, r := range k.All(event.TopicDead, 0) {
		if string(r.Header(event.HeaderOrigPartition)) != strconv.Itoa(p) {
			continue
		}

		offset, err := strconv.ParseInt(string(r.Header(event.HeaderOrigOffset)), 10, 64)
		if err != nil || string(r.Header(event.HeaderErrorKind)) != string(UnknownAccount) {
			t.Fatalf("dead letter %q: %v", r.Headers, err)
		}

		covered[offset] = struct{}{}
	}

	if len(covered) != each {
		var lost []int
		for i := range each {
			if _, ok := covered[int64(i)]; !ok {
				lost = append(lost, i)
			}
		}

		t.Fatalf("partition %d: positions %v are neither delivered nor dead letters", p, lost)
	}
}
