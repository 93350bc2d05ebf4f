package event

import (
	"encoding/json"
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

func FuzzParsePosition(f *testing.F) {
	f.Add("3:123456")
	f.Add("3:123456@7")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePosition(s)
		if err != nil {
			return
		}

		if again, err := ParsePosition(p.String()); err != nil || again != p {
			t.Fatalf("%q: %v became %v", s, p, again)
		}
	})
}

func TestMessageIsJSONWithDataByteForByte(t *testing.T) {
	const data = `{"a" : 1.0,  "b":"é\u00e9", "a":2}`
	m := Message{
		ID: NextID(0, 1_795_000_000_123, 5), Type: QueueCall, AccountID: `ac"c`, Timestamp: 12,
		Data:     json.RawMessage(data),
		Metadata: Metadata{Source: "k\n1", OriginalFormat: "svc.cc", ProcessedAt: 13, QueueID: "q"},
	}
	var got struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		AccountID string          `json:"account_id"`
		Timestamp int64           `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
		Metadata  struct {
			Source         string `json:"source"`
			OriginalFormat string `json:"original_format"`
			ProcessedAt    int64  `json:"processed_at"`
			QueueID        string `json:"queue_id"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(m.Append(nil), &got); err != nil {
		t.Fatal(err)
	}

	if string(got.Data) != data {
		t.Errorf("data came out as %s", got.Data)
	}
	if got.ID != m.ID.String() || got.Type != string(m.Type) || got.AccountID != m.AccountID ||
		got.Timestamp != 12 || got.Metadata.Source != "k\n1" || got.Metadata.QueueID != "q" {
		t.Errorf("got %+v", got)
	}
}

func TestSetOf(t *testing.T) {
	every, _, _ := SetOf(nil)
	if every&Own != 0 || every&ClassOf(Custom, "svc.cc", "") == 0 {
		t.Error("without event_types: every type, not our own events")
	}

	custom, _, _ := SetOf([]string{string(Custom)})
	if custom&ClassOf(Custom, FormatOwn, "") == 0 || custom&ClassOf(QueueCall, "svc.cc", "") != 0 {
		t.Error("AGENT_CUSTOM_EVENT by name admits our own events and nothing else")
	}
	if every&OwnPerformance != 0 || custom&ClassOf(AgentPerformance, FormatPerformance, "") != 0 ||
		every&ClassOf(AgentPerformance, "generic", "") == 0 {
		t.Error("without AGENT_PERFORMANCE by name: no figures of ours, but those of a source")
	}

	performance, _, _ := SetOf([]string{string(AgentPerformance)})
	if performance&ClassOf(AgentPerformance, FormatPerformance, "") == 0 ||
		performance&ClassOf(Custom, FormatOwn, "") != 0 {
		t.Error("AGENT_PERFORMANCE by name admits our figures and no other event of ours")
	}
	if _, unknown, ok := SetOf([]string{string(QueueCall), "nope"}); ok || unknown != "nope" {
		t.Error("an unknown type is named")
	}
}

func TestFirstIDIsNotAfterAnyIDOfItsMillisecond(t *testing.T) {
	at := time.UnixMilli(1_795_000_000_123)
	if FirstID(at, 9) != NextID(0, at.UnixMilli(), 9) {
		t.Error("FirstID and NextID disagree")
	}
}
