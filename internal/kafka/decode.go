package kafka

import (
	"bytes"
	"io"
	"time"

	"github.com/segmentio/kafka-go/compress"
)

// decoder turns record batches into records, into memory it uses again: what
// it gave is valid until reset. Keys and values lie in the response itself, or
// in unpacked where a batch was compressed.
type decoder struct {
	topic     string
	partition int

	records  []Record
	headers  []Header
	unpacked []byte
	names    map[string]string // header names seen, so that each is allocated once
	aborts   aborts
}

// maxUnpacked bounds what one compressed batch may unpack to; brokers take
// batches of a few MiB at most, packed.
const maxUnpacked = 64 << 20

// maxNames bounds the header names kept; a writer that makes names up costs an
// allocation each, not memory.
const maxNames = 64

func (d *decoder) reset() {
	clear(d.headers) // they hold values alive
	d.records, d.headers, d.unpacked = d.records[:0], d.headers[:0], d.unpacked[:0]
}

// decoded is what is known of a batch after decoding it.
type decoded struct {
	found  bool   // there was a whole batch
	rest   []byte // what follows it
	base   int64  // its first offset
	next   int64  // to be read after it; -1: not known
	epoch  int32  // of the leader that wrote it
	before int    // how many records were decoded before it
}

// batch decodes the first batch of b, leaving out records below from.
func (d *decoder) batch(b []byte, from int64) (decoded, error) {
	h, content, rest, next, err := splitBatch(b)
	out := decoded{rest: rest, base: h.base, next: next, epoch: h.epoch, before: len(d.records)}
	if err != nil || content == nil {
		return out, err
	}
	out.found = true
	if h.last < from { // brokers answer with the whole batch an offset lies in
		out.base, out.next = from, from
		return out, nil
	}
	if skip, err := d.aborts.skip(&h, content); skip || err != nil {
		return out, err
	}
	if codec := h.attributes & attrCompression; codec != 0 {
		if content, err = d.unpack(codec, content); err != nil {
			return out, err
		}
	}
	if err := d.decode(&h, content, from); err != nil {
		d.records = d.records[:out.before]
		return out, err
	}
	return out, nil
}

// decode reads the records of one batch.
func (d *decoder) decode(h *batchHeader, content []byte, from int64) error {
	r := wireReader{b: content}
	before := int64(-1)
	for range h.records {
		size := r.varlen()
		record := wireReader{b: r.take(size)}
		record.int8() // attributes: none are defined
		ms := h.firstTime + record.varint()
		delta := record.varint()
		key := record.varbytes()
		value := record.varbytes()
		headers, ok := d.decodeHeaders(&record)
		if r.bad || record.bad || !ok || len(record.b) != 0 {
			return corrupt("a malformed record")
		}
		if delta <= before || delta > h.last-h.base {
			return corrupt("records whose offsets do not rise")
		}
		before = delta
		if h.base+delta < from {
			continue
		}
		if h.attributes&attrLogAppendTime != 0 {
			ms = h.maxTime
		}
		d.records = append(d.records, Record{
			Topic: d.topic, Partition: d.partition, Offset: h.base + delta, LeaderEpoch: h.epoch,
			Time: time.UnixMilli(ms), Key: key, Value: value, Headers: headers,
		})
	}
	if len(r.b) != 0 {
		return corrupt("a batch that goes on after its last record")
	}
	return nil
}

func (d *decoder) decodeHeaders(r *wireReader) ([]Header, bool) {
	count := r.varint()
	if count == 0 {
		return nil, true
	}
	if count < 0 || count > int64(len(r.b)/2) { // each takes two bytes at least
		return nil, false
	}
	start := len(d.headers)
	for range count {
		name := r.varbytes()
		d.headers = append(d.headers, Header{d.name(name), r.varbytes()})
	}
	return d.headers[start:len(d.headers):len(d.headers)], true
}

// name is b as a string, the same one each time.
func (d *decoder) name(b []byte) string {
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.names == nil {
		d.names = map[string]string{}
	}
	if len(d.names) < maxNames {
		d.names[s] = s
	}
	return s
}

// unpack appends the unpacked content to d.unpacked. What was unpacked before
// stays where it is, also when the memory has to grow.
func (d *decoder) unpack(codec int16, content []byte) ([]byte, error) {
	c := compress.Compression(codec).Codec()
	if c == nil {
		return nil, corrupt("an unknown compression")
	}
	in := c.NewReader(bytes.NewReader(content))
	defer in.Close()
	start := len(d.unpacked)
	out := bytes.NewBuffer(d.unpacked)
	n, err := io.Copy(out, io.LimitReader(in, maxUnpacked+1))
	if err != nil {
		return nil, corrupt("a batch that does not unpack")
	}
	if n > maxUnpacked {
		return nil, corrupt("a batch that unpacks to more than 64 MiB")
	}
	d.unpacked = out.Bytes()
	return d.unpacked[start:len(d.unpacked):len(d.unpacked)], nil
}
