package kafka

import "time"

// decoder decodes record batches into records. It reuses its memory: records are valid
// until reset. Keys and values refer to the response itself, or to window for
// compressed batches.
type decoder struct {
	topic     string
	partition int

	records []Record
	headers []Header
	names   map[string]string // header names already allocated
	aborts  aborts

	unpacking *unpacking // a compressed batch with records left to decode
	window    []byte     // unpacked content
	parsed    int        // length of the complete, decoded records in window
	wanted    int        // bytes that window should hold next time; 0: as many as now
}

// maxNames bounds the cached header names; further names cost an allocation each, but
// no permanent memory.
const maxNames = 64

func (d *decoder) reset() {
	clear(d.headers) // they reference values
	d.records, d.headers = d.records[:0], d.headers[:0]
	d.moveWindow()
}

// decoded is the result of decoding a batch.
type decoded struct {
	found  bool   // a complete batch was found
	rest   []byte // bytes after the batch
	base   int64  // first offset of the batch
	next   int64  // next offset to read; -1: unknown
	epoch  int32  // of the leader that wrote it
	before int    // number of records decoded before this batch
	more   bool   // the batch has more records than fit; next is the offset of the first of them
}

// batch decodes the first batch of b, or the remainder of the current one, and skips
// records below from.
func (d *decoder) batch(b []byte, from int64) (decoded, error) {
	if d.unpacking != nil {
		return d.unpack(from)
	}
	h, content, rest, next, err := splitBatch(b)
	out := decoded{rest: rest, base: h.base, next: next, epoch: h.epoch, before: len(d.records)}
	if err != nil || content == nil {
		return out, err
	}
	out.found = true
	if h.last < from { // brokers return the whole batch that contains an offset
		out.base, out.next = from, from
		return out, nil
	}
	if skip, err := d.aborts.skip(&h, content); skip || err != nil {
		return out, err
	}
	if h.attributes&attrCompression != 0 {
		if err := d.open(&h, content, out); err != nil {
			return out, err
		}
		return d.unpack(from)
	}
	if err := d.decode(&h, content, from); err != nil {
		d.records = d.records[:out.before]
		return out, err
	}
	return out, nil
}

// decode decodes the records of an uncompressed batch.
func (d *decoder) decode(h *batchHeader, content []byte, from int64) error {
	r := wireReader{b: content}
	before := int64(-1)
	for range h.records {
		record := wireReader{b: r.take(r.varlen())}
		record.bad = r.bad
		if err := d.decodeRecord(h, &record, &before, from); err != nil {
			return err
		}
	}
	if len(r.b) != 0 {
		return corrupt("a batch with data after its last record")
	}
	return nil
}

// decodeRecord reads one record. before is the offset delta of the preceding record.
func (d *decoder) decodeRecord(h *batchHeader, r *wireReader, before *int64, from int64) error {
	r.int8() // attributes: none are defined
	ms := h.firstTime + r.varint()
	delta := r.varint()
	key := r.varbytes()
	value := r.varbytes()
	had := len(d.headers)
	headers, ok := d.decodeHeaders(r)
	if r.bad || !ok || len(r.b) != 0 {
		return corrupt("a malformed record")
	}
	if delta <= *before || delta > h.last-h.base {
		return corrupt("records whose offsets do not rise")
	}
	*before = delta
	if h.base+delta < from {
		d.headers = d.headers[:had]
		return nil
	}
	if h.attributes&attrLogAppendTime != 0 {
		ms = h.maxTime
	}
	d.records = append(d.records, Record{
		Topic: d.topic, Partition: d.partition, Offset: h.base + delta, LeaderEpoch: h.epoch,
		Time: time.UnixMilli(ms), Key: key, Value: value, Headers: headers,
	})
	return nil
}

func (d *decoder) decodeHeaders(r *wireReader) ([]Header, bool) {
	count := r.varint()
	if count == 0 {
		return nil, true
	}
	if count < 0 || count > int64(len(r.b)/2) { // each takes at least two bytes
		return nil, false
	}
	start := len(d.headers)
	for range count {
		name := r.varbytes()
		d.headers = append(d.headers, Header{d.name(name), r.varbytes()})
	}
	return d.headers[start:len(d.headers):len(d.headers)], true
}

// name returns b as a string, allocated once per name.
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
