package normalizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// capturedStream returns a captured FreeSWITCH session as a feed sends it: each
// record with the switch's run and number.
func capturedStream(t *testing.T) []kafka.Record {
	t.Helper()
	var all []kafka.Record
	for _, format := range []string{"freeswitch.callcenter", "freeswitch.event"} {
		in, err := os.ReadFile("../format/freeswitch/testdata/" + format + "/captured.in.jsonl")
		if err != nil {
			t.Fatal(err)
		}

		for line := range bytes.Lines(in) {
			var said struct {
				Run    string `json:"Core-UUID"`
				Number string `json:"Event-Sequence"`
			}
			if err := json.Unmarshal(line, &said); err != nil {
				t.Fatal(err)
			}

			number, err := strconv.ParseUint(said.Number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}

			r := rawEvent(0, testRecorded, "acme")
			r.Value, r.Headers[0].Value = bytes.TrimSpace(line), []byte(format)
			all = append(all, withIdentity(r, event.Identity{Run: said.Run, Number: number}))
		}
	}

	return all
}

func withIdentity(r kafka.Record, i event.Identity) kafka.Record {
	r.Headers = append(slices.Clip(r.Headers), kafka.Header{Key: event.HeaderIdentity, Value: []byte(i.String())})
	return r
}

// inverted returns records in the order of another connection: neighbours have
// changed places.
func inverted(random *rand.Rand, records []kafka.Record) []kafka.Record {
	out := slices.Clone(records)
	for i := range out {
		if j := i + random.IntN(4); j < len(out) && random.IntN(2) == 0 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// interleaved returns both streams in one, each in its order.
func interleaved(random *rand.Rand, a, b []kafka.Record) (all []kafka.Record) {
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && random.IntN(2) == 0 {
			from = &b
		}
		n := 1 + random.IntN(len(*from))
		all, *from = append(all, (*from)[:n]...), (*from)[n:]
	}
	return all
}

// Two feeds read one switch; either begins or ends at any event. Each event that
// one of them has sent is one message, whatever the order in which they come.
func TestTwoCopiesOfACapturedStreamAreEachEventOnce(t *testing.T) {
	stream := capturedStream(t)
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 20))
		for cut := range len(stream) + 1 {
			whole, part := inverted(random, stream), inverted(random, stream)
			for i, cutOff := range [][]kafka.Record{part[:cut], part[cut:]} {
				records := interleaved(random, whole, cutOff)
				if random.IntN(4) == 0 { // one ends where the other one begins
					records = slices.Concat(whole[:cut], part)
				}

				got := normalizeAll(t, random, records)
				if len(got) != len(stream) {
					t.Fatalf("seed %d, cut %d.%d: %d messages of %d events", seed, cut, i, len(got), len(stream))
				}
			}
		}
	}
}

// normalizeAll normalizes records in batches, some of which are begun again, and
// returns the identities of the messages. It fails when one comes twice, or when
// the ids are not those of the raw log.
func normalizeAll(t *testing.T, random *rand.Rand, records []kafka.Record) map[string]bool {
	t.Helper()
	b := testBatch(event.TopicRaw, 3)
	b.partitionState, b.accounts = state.NewPartition(), accountsFunc(func(string) (bool, error) { return true, nil })
	ids := map[int64]event.ID{}
	last := event.ID(0)

	for i := range records {
		records[i].Offset = int64(i)
		last = event.NextID(last, records[i].Time.UnixMilli(), 3)
		ids[int64(i)] = last
	}

	seen := map[string]bool{}
	for taken := 0; taken < len(records); taken += b.rawRecords {
		before := b.lastID
		limit := min(1+random.IntN(8), len(records)-taken)
		for again := random.IntN(2); again >= 0; again-- {
			b.reset(before)
			if err := b.fill(t.Context(), records[taken:], limit); err != nil || b.rawRecords == 0 ||
				len(b.deadLetters) > 0 {
				t.Fatal(err, b.rawRecords, len(b.deadLetters))
			}
		}

		for i := range b.events {
			identity := string(b.events[i].Header(event.HeaderIdentity))
			if identity == "" || seen[identity] {
				t.Fatalf("a second message of %q", identity)
			}

			seen[identity] = true
			at, err := event.ParsePosition(string(b.events[i].Header(event.HeaderPosition)))
			if err != nil {
				t.Fatal(err)
			}

			if id, err := event.MessageID(b.events[i].Value); err != nil || id != ids[at.Offset] {
				t.Fatalf("record %d has the id %s, its place in the log is %s", at.Offset, id, ids[at.Offset])
			}
		}

		b.partitionState.Commit(func(state.Change) {})
	}

	return seen
}

// Records without an identity, and with a header that is none, are all normalized.
func TestOnlyAnIdentityMakesARepeat(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	b.partitionState = state.NewPartition()
	r := rawEvent(3, testRecorded, "acme")
	records := []kafka.Record{r, r}

	for _, header := range []string{"", "x", "x/y", "/1", "x/18446744073709551616"} {
		bad := withIdentity(r, event.Identity{})
		bad.Headers[1].Value = []byte(header)
		records = append(records, bad, bad)
	}

	if err := b.fill(t.Context(), records, len(records)); err != nil || len(b.events) != len(records) {
		t.Fatal(err, len(b.events))
	}

	for i := range b.events {
		if b.events[i].Header(event.HeaderIdentity) != nil {
			t.Errorf("message %d has an identity", i)
		}
	}

	if b.partitionState.Size(state.Identity) != 0 {
		t.Error("the state has numbers")
	}
}

// What became no message can come again, and a repeat is none after a takeover
// either. The position moves on with every record.
func TestRepeatsAreDroppedAndThePositionMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, began := newFakeKafka(1), time.Now()
		send := func(account string, number uint64) {
			k.Append(withIdentity(rawEvent(0, testRecorded.Add(time.Since(began)), account),
				event.Identity{Run: "r", Number: number}))
			time.Sleep(2 * time.Second)
		}

		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		stop := start(n)
		check := func(step string, messages, dead, repeats int) {
			t.Helper()
			got, numbers := k.All(event.TopicEvents, 0), testutil.ToFloat64(n.metrics.repeats)
			if len(got) != messages || len(k.All(event.TopicDead, 0)) != dead || numbers != float64(repeats) {
				t.Errorf("%s: %d messages, %d dead letters, %v repeats", step, len(got), len(k.All(event.TopicDead, 0)),
					numbers)
			}

			raw := len(k.All(event.TopicRaw, 0))
			if at := viewOf(t, k).Position(); at == nil || at.SourcePosition != fmt.Sprintf("0:%d", raw-1) {
				t.Errorf("%s: the position is %+v after %d records", step, at, raw)
			}
		}

		send("acme", 1)
		check("one", 1, 0, 0)
		send("acme", 1)
		check("a repeat", 1, 0, 1)
		send("nobody", 2)
		check("a dead letter", 1, 1, 1)
		send("acme", 2)
		check("its event after all", 2, 1, 1)
		send("nobody", 2) // of an account that is deleted by then
		check("a repeat without an account", 2, 1, 2)
		stop()
		n = newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		stop = start(n)
		send("acme", 1)
		check("a repeat after a takeover", 2, 1, 1)
		stop()
		k.Recreate(event.TopicState) // the identities are rebuilt from cc.evt
		n = newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		stop = start(n)
		send("acme", 2)
		check("a repeat after the state was lost", 2, 1, 1)
		time.Sleep(24 * time.Hour)
		send("acme", 2)
		check("a day later", 3, 1, 1)
		stop()
		checkState(t, k)
	})
}
