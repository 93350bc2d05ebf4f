//go:build !race

package fanout

import (
	"runtime"
	"testing"
	"unsafe"
)

// A connection that waits costs a goroutine. Its stack is 2 KB large if what waits fits in half of that, and 4 KB
// otherwise: with a hundred thousand connections the difference is 200 MB. The race detector has larger stacks.
func TestAnIdleConnectionNeedsASmallStack(t *testing.T) {
	const connections = 200

	directory := newDirectory()
	n := startNode(t, Config{}, newMemoryLog(1), directory, newPresence(), false)
	token := directory.token("root", []string{"root"}, nil)

	var each int64
	for range 5 { // new goroutines may begin with the average size of the others
		before := stackBytes()
		for range connections {
			n.dial(t, token, "")
		}

		each = (stackBytes() - before) / connections
		if each < 3<<10 {
			return
		}
	}

	t.Errorf("a connection has a stack of %d bytes", each)
}

// stackBytes returns the bytes of the stacks of all goroutines.
func stackBytes() int64 {
	runtime.GC() // frees those of goroutines that have ended
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.StackInuse)
}

// Go's allocator has a class of 576 bytes, and the next one of 640.
func TestASubscriberFitsItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(subscriber{}); size > 576 {
		t.Errorf("a subscriber has %d bytes", size)
	}
}
