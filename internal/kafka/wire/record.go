package wire

import "time"

// Header is one header of a record. Keys may repeat.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record to produce, or one that was read.
type Record struct {
	Topic       string    // base name, without the configured prefix
	Partition   int       // -1: chosen by the producer
	Offset      int64     // set by readers
	LeaderEpoch int32     // set by readers: of the leader that wrote it, see LogPosition
	Time        time.Time // millisecond precision; producing: zero means now
	Key, Value  []byte    // Kafka distinguishes nil and empty
	Headers     []Header
	// Oversized is the size in bytes of a record that readers did not decompress because it
	// is too large: then Value and Headers are missing.
	Oversized int
}

// Header returns the value of the last header named key, or nil.
func (r *Record) Header(key string) []byte {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value
		}
	}
	return nil
}

// Clone returns a copy of the record that shares no memory with it and remains valid
// after the next Read.
func (r *Record) Clone() *Record {
	c := *r
	c.Key, c.Value = cloneBytes(r.Key), cloneBytes(r.Value)
	c.Headers = make([]Header, len(r.Headers))
	for i, h := range r.Headers {
		c.Headers[i] = Header{h.Key, cloneBytes(h.Value)}
	}
	return &c
}

func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
