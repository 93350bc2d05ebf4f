package rtp

import (
	"bytes"
	"testing"

	"github.com/pion/rtp"
)

// FuzzParse holds our reading of packets to pion's.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x80, 0x00, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7, 0xFF, 0xFF})
	f.Add([]byte{0x91, 0xE5, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7, 1, 2, 3, 4, 0xBE, 0xDE, 0, 1, 0x10, 0xAA, 0, 0, 9})
	f.Add([]byte{0xA0, 0x08, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7, 1, 2, 0, 2})
	f.Add([]byte{0xA0, 0x08, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7, 200})

	f.Fuzz(func(t *testing.T, b []byte) {
		var ours Packet
		var theirs rtp.Packet
		whole := bytes.Clone(b)
		ok := ours.parse(b)

		if !bytes.Equal(b, whole) {
			t.Fatal("parsing changed the packet")
		}
		if err := theirs.Unmarshal(b); err != nil || theirs.Version != 2 {
			return // pion also parses extensions, and refuses malformed ones
		}

		if !ok {
			if theirs.Padding {
				return // pion takes padding of no length
			}
			t.Fatalf("refused a valid packet: %x", b)
		}

		if ours.PayloadType != theirs.PayloadType || ours.Sequence != theirs.SequenceNumber ||
			ours.Timestamp != theirs.Timestamp ||
			ours.SSRC != theirs.SSRC || ours.Marker != theirs.Marker || !bytes.Equal(ours.Payload, theirs.Payload) {
			t.Errorf("read %+v of %x, want %+v", ours, b, theirs)
		}
	})
}
