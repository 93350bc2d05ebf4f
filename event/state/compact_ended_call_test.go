package state

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"trunkline/event"
)

// The compact form of an ended call loses nothing, also no member that is added to Entry.
func TestAnEndedCallKeepsEveryMember(t *testing.T) {
	entries := map[string]*Entry{"no member": {Kind: Call, Facts: event.Facts{State: event.Ended}}}
	members := reflect.VisibleFields(reflect.TypeFor[Entry]())
	all := &Entry{}

	for _, member := range members {
		if member.Anonymous {
			continue
		}

		one := &Entry{}
		setMembers(reflect.ValueOf(one).Elem().FieldByIndex(member.Index), new(int))
		one.Kind, one.State = Call, event.Ended
		entries[member.Name] = one

		if one.isCompact() {
			setMembers(reflect.ValueOf(all).Elem().FieldByIndex(member.Index), new(int))
		}
	}

	all.Kind, all.State = Call, event.Ended
	long := *all
	long.ID, long.Caller, long.CallID = strings.Repeat("i", maxTextBytes), strings.Repeat("ü", 2000), long.ID

	least := &Entry{AccountID: "a", Kind: Call, ID: "c", Since: -1, Facts: event.Facts{State: event.Ended, CallID: "c"}}
	for name, e := range map[string]*Entry{"all members": all, "long texts": &long, "the fewest members": least} {
		if _, ok := e.compact().(*endedCall); !ok {
			t.Fatalf("%s: it has no compact form", name)
		}
		entries[name] = e
	}

	for name, e := range entries {
		c := e.compact()
		if got := entryOf(c); !reflect.DeepEqual(got, e) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, *got, *e)
		}

		if c.Key() != e.Key() || c.lastEvent() != e.EventID || c.class() != e.class() ||
			c.estimatedSize() != e.estimatedSize() ||
			string(c.Append(nil)) != string(e.Append(nil)) {
			t.Errorf("%s: the compact form says something else of it: %s", name, c.Append(nil))
		}
	}
}

// setMembers gives every member of a struct a value of its own.
func setMembers(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			setMembers(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			setMembers(v.Index(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setMembers(v.Elem(), n)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(int64(*n) << 33)
	}
}

// A call that has ended waits a quarter of an hour for late events.
func TestAnEndedCallTakesAtMost500Bytes(t *testing.T) {
	const calls, bound = 20_000, 500
	last := event.ID(0)
	play := func(apply func(*Event)) {
		for n := range calls {
			id := fmt.Sprintf("%08x-1c37-4f0e-8a43-0e7f1f5a7b1c", n)
			for _, name := range []event.Name{event.NameQueueCallEntered, event.NameQueueCallOffered,
				event.NameQueueCallAnswered, event.NameQueueCallEnded} {
				last = event.NextID(last, firstMilli+int64(n)*40, 3)
				f := event.Facts{Name: name, CallID: id, InteractionID: id, QueueID: "support@pbx.example.com",
					Caller: "+15551230001",
					Callee: "+4930123456", Reason: "NORMAL_CLEARING", TimestampMS: firstMilli + int64(n)*40}

				if name != event.NameQueueCallEntered {
					f.AgentID, f.AgentName = fmt.Sprintf("%d@pbx.example.com", 1000+n%50), "Ann Example"
				}

				apply(&Event{ID: last, Account: strings.Clone("acme"), Timestamp: firstMilli/1000 + int64(n)/25,
					Source: "feed:pbx", Facts: f})
			}
		}
	}

	var p *Partition
	var written map[Key]Value // as the normalizer's writer holds them
	perCall := heapOf(func() {
		p, written = NewPartition(), map[Key]Value{}
		play(func(e *Event) {
			p.CompleteAndFold(e)
			p.Commit(func(c Change) { written[c.Key] = c.Value })
		})
	}) / calls
	if p.Size(Call) != calls || perCall > bound {
		t.Errorf("%d calls take %d bytes each in a normalizer, want at most %d", p.Size(Call), perCall, bound)
	}

	t.Logf("%d bytes in a normalizer", perCall)

	var v *View
	perCall = heapOf(func() {
		v = NewView()
		for key, value := range written {
			r, err := ParseRecord(key.String(), value.Append(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			v.Apply(r)
			v.Apply(Record{Position: &Position{EventID: last}})
		}
	}) / calls
	if v.Size(Call) != calls || perCall > bound {
		t.Errorf("%d calls take %d bytes each in a view, want at most %d", v.Size(Call), perCall, bound)
	}

	t.Logf("%d bytes in a view", perCall)
	runtime.KeepAlive(p)
	runtime.KeepAlive(written)
}

// heapOf returns the bytes of the objects that make leaves reachable.
func heapOf(make func()) int64 {
	measure := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := measure()
	make()
	return measure() - before
}
