package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"trunkline/event"
)

// randomEvents returns events of few agents and calls that do everything in any
// order, hours apart now and then.
func randomEvents(random *rand.Rand, n int) []Event {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	states := []event.State{"", "", event.Offline, event.Available, event.Ringing, event.Talking, event.WrapUp,
		event.Break, event.OtherState}

	all, last, now := make([]Event, n), event.ID(0), int64(firstMilli)
	for i := range all {
		switch random.IntN(60) {
		case 0:
			now += random.Int64N(100 * 3_600_000)
		case 1:
			now += random.Int64N(1_200_000)
		default:
			now += random.Int64N(3000)
		}

		last = event.NextID(last, now, 3)
		f := event.Facts{Name: event.Names()[random.IntN(len(event.Names()))], AgentID: pick("", "1", "2", "3", "4"),
			CallID:  pick("", "c", "d", "e"),
			QueueID: pick("", "", "q", "r"), Caller: pick("", "", "+49301", "Ünal\t\"U\"", "1\xff"),
			Callee: pick("", "1", "2"), AgentName: pick("", "", "Ann")}

		if random.IntN(2) == 0 {
			f.TimestampMS = now - random.Int64N(500)
		}
		if random.IntN(3) == 0 {
			f.State = states[random.IntN(len(states))]
		}

		all[i] = Event{ID: last, Account: pick("a", "a", "b"), Timestamp: now / 1000,
			Source: pick("kafka", "feed:a", "feed:b"), Facts: f}
		if random.IntN(2) == 0 {
			all[i].Identity = event.Identity{Run: pick("r", "s"), Number: uint64(random.IntN(3 * numbersPerRecord))}
		}
	}

	return all
}

// bytesOf returns the state as its records are.
func bytesOf(p *Partition) []byte {
	var b []byte
	for _, v := range p.Values() {
		b = append(v.Append(append(b, v.Key().String()...)), '\n')
	}
	return b
}

// records returns what a normalizer writes after a batch.
func records(t *testing.T, p *Partition, offset int64) []Record {
	t.Helper()
	var all []Record
	read := func(key string, value, id []byte) {
		r, err := ParseRecord(key, value, id)
		if err != nil {
			t.Fatalf("%s: %s: %v", key, value, err)
		}
		all = append(all, r)
	}

	p.Commit(func(c Change) {
		if c.Value == nil {
			read(c.Key.String(), nil, c.EventID.Append(nil))
			return
		}
		read(c.Key.String(), c.Value.Append(nil), nil)
	})

	position := Position{Kind: PositionKind, EventID: p.Last(), Offset: offset, LeaderEpoch: -1}
	read(PositionKey, position.Append(nil), nil)
	return all
}

// sameEvent reports whether two events and what had happened before them are equal.
func sameEvent(a, b Event) bool {
	past := a.Past.equal(b.Past)
	a.Past, b.Past = nil, nil
	return past && reflect.DeepEqual(a, b)
}

// The state is the fold of the facts of cc.evt, whoever folds them: the
// normalizer that completes them in batches that it gives up and begins again,
// one that reads them from the beginning, and one that takes over from the
// records of cc.state at any batch and reads what came after it, repeats
// included. And a normalizer that goes on from there makes the same facts.
func TestTheFoldGivesTheSameBytesFromAnywhere(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 7))
		events := randomEvents(random, 400)
		limit := maxPerAccount

		if seed%3 == 0 {
			limit = 2
		}

		fresh := func() *Partition {
			p := NewPartition()
			for i := range p.limits {
				p.limits[i] = min(limit, p.limits[i])
			}
			return p
		}

		apply := func(p *Partition, e Event) Event {
			p.CompleteAndFold(&e)
			return e
		}

		straight := fresh()
		written := make([]Event, len(events)) // on cc.evt
		after := make([][]byte, len(events)+1)

		for i, e := range events {
			written[i] = apply(straight, e)
			after[i+1] = bytesOf(straight)
		}

		if len(after[len(events)]) == 0 {
			t.Fatal("the events leave nothing")
		}

		// The normalizer, in batches.
		kept, topic := fresh(), []Record(nil)
		ends := []int{0} // of batches
		upTo := []int{0} // records of the topic after each batch

		for done := 0; done < len(events); {
			size := min(1+random.IntN(12), len(events)-done)
			begin := kept.Mark()
			for range random.IntN(3) { // a batch that is begun again, or loses its last event
				for i := range 1 + random.IntN(size) {
					mark := kept.Mark()
					apply(kept, events[done+i])
					if random.IntN(4) == 0 {
						kept.Rollback(mark)
						break
					}
				}

				if random.IntN(2) == 0 {
					kept.Reset()
				} else {
					kept.Rollback(begin)
				}

				if !bytes.Equal(bytesOf(kept), after[done]) || kept.Bytes() != 0 {
					t.Fatalf("seed %d: a batch that was given up changed the state", seed)
				}
			}

			for i := range size {
				if got := apply(kept, events[done+i]); !sameEvent(got, written[done+i]) {
					t.Fatalf("seed %d, event %d: facts %+v, want %+v", seed, done+i, got.Facts, written[done+i].Facts)
				}
			}

			done += size
			topic = append(topic, records(t, kept, int64(done))...)
			ends, upTo = append(ends, done), append(upTo, len(topic))

			if !bytes.Equal(bytesOf(kept), after[done]) {
				t.Fatalf("seed %d, after %d events:\n%s\nwant\n%s", seed, done, bytesOf(kept), after[done])
			}
		}

		read := fresh()
		for i, e := range written {
			read.FoldCompleted(&e)
			if !bytes.Equal(bytesOf(read), after[i+1]) {
				t.Fatalf("seed %d: the fold from the beginning differs after event %d:\n%s\nwant\n%s", seed, i,
					bytesOf(read), after[i+1])
			}
		}

		for batch := range ends {
			v := NewView()
			v.KeepNumbers = true
			for _, r := range compacted(random, topic[:upTo[batch]]) {
				v.Apply(r)
			}

			p := fresh()
			p.Load(v)
			if !bytes.Equal(bytesOf(p), after[ends[batch]]) {
				t.Fatalf("seed %d: loaded after batch %d:\n%s\nwant\n%s", seed, batch, bytesOf(p), after[ends[batch]])
			}

			from := max(0, ends[batch]-random.IntN(5)) // repeats
			to := min(len(events), ends[batch]+random.IntN(50))
			for _, e := range written[from:to] {
				p.FoldCompleted(&e)
			}

			for i := max(to, ends[batch]); i < len(events); i++ {
				if got := apply(p, events[i]); !sameEvent(got, written[i]) {
					t.Fatalf("seed %d, event %d after a takeover at %d: facts %+v, want %+v", seed, i, ends[batch],
						got.Facts, written[i].Facts)
				}
			}

			if !bytes.Equal(bytesOf(p), after[len(events)]) {
				t.Fatalf("seed %d: after a takeover at batch %d:\n%s\nwant\n%s", seed, batch, bytesOf(p),
					after[len(events)])
			}
		}
	}
}

// compacted returns records as Kafka leaves them after compacting a part of the
// log.
func compacted(random *rand.Rand, records []Record) []Record {
	part := random.IntN(len(records) + 1)
	key := func(r Record) string {
		if r.Position != nil {
			return PositionKey
		}
		return r.Key().String()
	}

	last := map[string]int{}
	for i, r := range records[:part] {
		last[key(r)] = i
	}

	var kept []Record
	for i, r := range records[:part] {
		if last[key(r)] == i {
			kept = append(kept, r)
		}
	}

	return append(kept, records[part:]...)
}

func TestAChangedEntryIsAnotherOne(t *testing.T) {
	p := newPlayer()
	p.play(event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "q"})
	p.play(agentFacts(event.NameAgentLogin, "x", ""))
	before := p.Find(Key{"a", Agent, "x"})
	had := fmt.Sprintf("%+v", *before)
	p.play(event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "p"})
	p.play(event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "q"})

	if got := fmt.Sprintf("%+v", *before); got != had {
		t.Errorf("an entry that was handed out changed to %s", got)
	}
	if queues := p.Find(Key{"a", Agent, "x"}).Queues; !slices.Equal(queues, []string{"p"}) {
		t.Errorf("queues %v", queues)
	}
}

func BenchmarkApply(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 7))
	names := []event.Name{event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered,
		event.NameQueueCallEnded}
	p, last, i := NewPartition(), event.ID(0), 0

	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = fmt.Sprintf("%08x-2f1e-4c7b-9a56-1f6a0e9f1c11", i)
	}

	b.ReportAllocs()
	for b.Loop() {
		last = event.NextID(last, firstMilli+int64(i), 3)
		f := event.Facts{Name: names[i%4], CallID: ids[(i/4)%len(ids)], QueueID: "q"}
		if i%4 > 0 {
			f.AgentID = ids[random.IntN(300)]
		}

		p.CompleteAndFold(&Event{ID: last, Account: "acme", Timestamp: firstMilli / 1000, Facts: f})
		i++
		if i%200 == 0 {
			p.Commit(func(Change) {})
		}
	}
}
