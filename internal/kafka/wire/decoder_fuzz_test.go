package wire

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// reseal makes the checksum right, so that what is behind it is reached.
func reseal(b []byte) {
	if len(b) >= BatchHeaderBytes {
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[batchCRCEnd:], castagnoli))
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(sealed(ProducerState{}, sample()...), int64(0))
	f.Add(sealed(ProducerState{}, sample()...), int64(2))
	f.Fuzz(func(t *testing.T, b []byte, from int64) {
		for _, right := range []bool{false, true} {
			if right {
				if len(b) < BatchHeaderBytes {
					return
				}
				b = append([]byte(nil), b...)
				binary.BigEndian.PutUint32(b[8:], uint32(len(b)-batchLengthEnd))
				reseal(b)
			}

			d := Decoder{}
			d.SetAborted([]AbortedTransaction{{Producer: 1}})
			out, err := d.Decode(b, from)
			rest, next := out.Found, out.Next
			if err != nil && len(d.Records) != 0 {
				t.Fatal("records of a damaged batch")
			}
			if err == nil && rest && next < from && len(d.Records) > 0 {
				t.Fatalf("going back from %d to %d", from, next)
			}

			last := int64(-1)
			for _, r := range d.Records {
				if r.Offset < from || r.Offset <= last || r.Offset >= next {
					t.Fatalf("offset %d after %d, from %d, next %d", r.Offset, last, from, next)
				}
				last = r.Offset
			}
		}
	})
}
