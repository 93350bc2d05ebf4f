package event

import (
	"slices"
	"testing"
	"time"
)

func TestNextIDIsUniqueAndRisesWithinAPartition(t *testing.T) {
	const ms = 1_795_000_000_123
	seen := make(map[ID]bool)
	for _, partition := range []int{0, 1, 7, 8, 1023} {
		var prev ID
		for range 10_000 {
			id := NextID(prev, ms, partition)
			if id <= prev || id.Partition() != partition || seen[id] {
				t.Fatalf("id %s after %s in partition %d", id, prev, partition)
			}
			seen[id] = true
			prev = id
		}
	}
}

func TestTenMillionRecordsOfOneMillisecondHaveTenMillionIDs(t *testing.T) {
	if testing.Short() {
		t.Skip("sorts ten million ids")
	}

	const total, partitions = 10_000_000, 500
	ids := make([]ID, 0, total)
	for p := range partitions {
		var prev ID
		for range total / partitions {
			id := NextID(prev, 1_795_000_000_123, p*2)
			if id <= prev {
				t.Fatalf("partition %d: %d after %d", p*2, id, prev)
			}
			ids, prev = append(ids, id), id
		}
	}

	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != total {
		t.Fatalf("%d different ids", n)
	}
}

func TestNextIDKeepsTheRecordsMillisecond(t *testing.T) {
	for partition := range MaxPartitions {
		if got := NextID(0, 1_795_000_000_123, partition).Milli(); got != 1_795_000_000_123 {
			t.Fatalf("partition %d: millisecond %d", partition, got)
		}
	}
}

func TestNextIDGoesOnWhenTheClockStepsBack(t *testing.T) {
	first := NextID(0, 1_795_000_000_123, 3)
	second := NextID(first, 1_795_000_000_000, 3)
	if second != first+MaxPartitions {
		t.Fatalf("got %d, want %d", second, first+MaxPartitions)
	}
}

func TestNextIDCarriesAnyClockIn19Digits(t *testing.T) {
	for _, ms := range []int64{-1 << 63, -1, 0, 1, 1<<63 - 1} {
		id := NextID(0, ms, 1023)
		back, err := ParseID(id.String())
		if err != nil || back != id {
			t.Fatalf("timestamp %d: id %d is written %q: %v", ms, id, id, err)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, s := range []string{
		"", "cc_evt_", "cc_evt_1", "cc_evt_17950000001230000000", "cc_evt_-795000000123000000",
		"CC_EVT_1795000000123000000", "cc_evt_1795000000123 00000", "cc_evt_9999999999999999999",
		"cc_evt_0000000000000000000", "cc_evt_+795000000123000000",
	} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("%q was read as %d", s, id)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("cc_evt_1795000000123000000")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseID(s); err == nil && id.String() != s {
			t.Fatalf("%q came back as %q", s, id)
		}
	})
}

func TestFirstIDIsNotAfterAnyIDOfItsMillisecond(t *testing.T) {
	at := time.UnixMilli(1_795_000_000_123)
	if FirstID(at, 9) != NextID(0, at.UnixMilli(), 9) {
		t.Error("FirstID and NextID disagree")
	}
}

func TestMessageIDReadsWhatAppendWrites(t *testing.T) {
	m := Message{ID: NextID(0, 1_795_000_000_123, 5), Type: Custom, AccountID: "a", Data: []byte(`{}`)}
	value := m.Append(nil)
	if id, err := MessageID(value); err != nil || id != m.ID {
		t.Errorf("got %v, %v", id, err)
	}

	for _, bad := range []string{"", "{}", `{"id":"cc_evt_1"}`, string(value[:messageIDEnd]), ` ` + string(value)} {
		if id, err := MessageID([]byte(bad)); err == nil {
			t.Errorf("%q has the id %v", bad, id)
		}
	}
}
