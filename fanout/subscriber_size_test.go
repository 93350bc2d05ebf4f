package fanout

import (
	"testing"
	"unsafe"
)

// Go's allocator has a class of 576 bytes, and the next one of 640: with a hundred thousand connections the
// difference is 6 MB.
func TestASubscriberFitsItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(subscriber{}); size > 576 {
		t.Errorf("a subscriber has %d bytes", size)
	}
}
