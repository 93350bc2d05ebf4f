package snapshot

import (
	"testing"

	"trunkline/event"
)

// What a message costs a node besides its delivery.
func BenchmarkApplyCapturedSession(b *testing.B) {
	messages := golden(b, "freeswitch.callcenter/captured")
	f, id, size := New(testBounds), event.ID(0), 0
	for _, m := range messages {
		size += len(m.Data)
	}
	b.SetBytes(int64(size / len(messages)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m := messages[i%len(messages)]
		id = event.NextID(id, start.UnixMilli(), 3)
		m.ID = id
		f.Apply(m)
		i++
	}
}
