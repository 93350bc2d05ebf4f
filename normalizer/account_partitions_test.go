package normalizer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// readAccountPartitions returns the partitions that cc.accounts names for each account; "" is the
// account of complete partitions.
func readAccountPartitions(t *testing.T, k *kafkatest.Log) map[string][]int {
	t.Helper()
	all := map[string][]int{}
	for _, r := range k.All(event.TopicAccounts, 0) {
		p, err := event.ParseAccountPartition(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}

		if !slices.Contains(all[p.AccountID], p.Partition) {
			all[p.AccountID] = append(all[p.AccountID], p.Partition)
			slices.Sort(all[p.AccountID])
		}
	}

	return all
}

// Two normalizers work on all partitions at once, end at random and fail to
// produce. At the time of each event, cc.accounts names its account's partition.
func TestNoEventIsInAPartitionThatItsAccountIsNotNamedFor(t *testing.T) {
	const partitions, accounts, events = 3, 12, 600
	k := newFakeKafka(partitions)
	k.MaxRead = 20
	random := rand.New(rand.NewPCG(1, 2))

	k.OnProduce = func(records []kafka.Record) (int, error) {
		if records[0].Topic == event.TopicEvents {
			placed := readAccountPartitions(t, k)
			for i := range records {
				if !slices.Contains(placed[string(records[i].Key)], records[i].Partition) {
					t.Errorf("an event of %s in partition %d, which is not named", records[i].Key, records[i].Partition)
				}
			}
		}

		if time.Now().UnixNano()%7 == 0 {
			return 0, errAway
		}

		return len(records), nil
	}

	known := accountsFunc(func(string) (bool, error) { return true, nil })
	stops := []func(){start(newTestNormalizer(t, k, known, event.TopicRaw)),
		start(newTestNormalizer(t, k, known, event.TopicRaw))}
	want := map[string][]int{"": numbersTo(partitions)}

	for i := range events {
		account, p := fmt.Sprint("account", random.IntN(accounts)), random.IntN(partitions)
		if !slices.Contains(want[account], p) {
			want[account] = append(want[account], p)
			slices.Sort(want[account])
		}

		k.Append(rawEvent(p, time.UnixMilli(1_795_000_000_000+int64(i)), account))
		if i%100 == 50 {
			n := random.IntN(2)
			stops[n]()
			stops[n] = start(newTestNormalizer(t, k, known, event.TopicRaw))
		}
	}

	for deadline := time.Now().Add(3 * time.Minute); !maps.EqualFunc(readAccountPartitions(t, k), want,
		slices.Equal[[]int]); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("placed %v, want %v", readAccountPartitions(t, k), want)
		}
	}

	for _, stop := range stops {
		stop()
	}
}

func numbersTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// A cluster whose events are older than cc.accounts: the partition is complete
// from its end on, and the accounts of the state are named.
func TestThePastOfAPartitionIsNotClaimed(t *testing.T) {
	k := newFakeKafka(1)
	known := accountsFunc(func(string) (bool, error) { return true, nil })
	agent := rawEvent(0, time.UnixMilli(1_795_000_000_000), "shop")
	agent.Value = []byte(`{"Account-ID":"shop","Type":"AGENT_LOGIN"}`)
	k.Append(rawEvent(0, time.UnixMilli(1_795_000_000_000), "kiosk"), agent)
	stop := start(newTestNormalizer(t, k, known, event.TopicRaw))
	await(t, func() bool { return len(k.All(event.TopicEvents, 0)) == 2 })
	stop()
	k.Recreate(event.TopicAccounts)
	stop = start(newTestNormalizer(t, k, known, event.TopicRaw))
	defer stop()

	await(t, func() bool { return len(k.All(event.TopicAccounts, 0)) > 0 && readAccountPartitions(t, k)[""] != nil })
	for _, r := range k.All(event.TopicAccounts, 0) {
		if p, _ := event.ParseAccountPartition(r.Key, r.Value); p.AccountID == "" && p.Offset != 2 {
			t.Errorf("complete from %d on, want 2", p.Offset)
		}
	}

	k.Append(rawEvent(0, time.UnixMilli(1_795_000_000_500), "kiosk"))
	await(t, func() bool { return readAccountPartitions(t, k)["kiosk"] != nil })
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited for three minutes")
		}
	}
}
