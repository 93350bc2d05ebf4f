package wire

import "time"

// Decoder decodes record batches into records. It reuses its memory: records are valid
// until Reset. Keys and values refer to the response itself, or to window for
// compressed batches.
type Decoder struct {
	Topic     string
	Partition int
	Records   []Record // decoded since Reset

	headers     []Header
	headerNames map[string]string // header names already allocated
	aborted     abortedTransactions

	compressed   *compressedBatch // a compressed batch with records left to decode
	window       []byte           // decompressed content
	parsedBytes  int              // length of the complete, decoded records in window
	wantedWindow int              // bytes that window should hold next time; 0: as many as now
}

// maxHeaderNames bounds the cached header names; further names cost an allocation each, but
// no permanent memory.
const maxHeaderNames = 64

// maxDecodedRecords limits the records that are returned at once, rounded up to whole batches
// that are not compressed: enough to amortize the cost per call, few enough for the
// processor's cache.
const maxDecodedRecords = 4096

// Reset drops the records.
func (d *Decoder) Reset() {
	clear(d.headers) // they reference values
	d.Records, d.headers = d.Records[:0], d.headers[:0]
	d.moveWindow()
}

// Full reports whether the decoder has as many records as it should return at once.
func (d *Decoder) Full() bool { return len(d.Records) >= maxDecodedRecords }

// Shrink frees the window if it is larger than a number of bytes. It is called between
// batches.
func (d *Decoder) Shrink(maxBytes int) {
	if cap(d.window) > maxBytes && len(d.Records) == 0 {
		d.window, d.parsedBytes = nil, 0
	}
}

// Decoded is the result of decoding a batch.
type Decoded struct {
	Found         bool   // a complete batch was found
	Rest          []byte // bytes after the batch
	Base          int64  // first offset of the batch
	Next          int64  // next offset to read; -1: unknown
	Epoch         int32  // of the leader that wrote it
	RecordsBefore int    // number of records decoded before this batch
	More          bool   // the batch has more records than fit; Next is the offset of the first of them
}

// Decode decodes the first batch of b, or the remainder of the current one, and skips
// records below from. After an error, which describes the damage, it has added no
// record.
func (d *Decoder) Decode(b []byte, from int64) (Decoded, error) {
	// b is then still that batch, since the reader keeps it until Decoded.More is false.
	if d.compressed != nil {
		return d.decodeCompressed(from)
	}

	h, content, rest, next, err := splitBatch(b)
	out := Decoded{Rest: rest, Base: h.baseOffset, Next: next, Epoch: h.epoch, RecordsBefore: len(d.Records)}
	if err != nil || content == nil {
		return out, err
	}

	out.Found = true
	if h.lastOffset < from { // brokers return the whole batch that contains an offset
		out.Base, out.Next = from, from
		return out, nil
	}

	skip, err := d.aborted.skips(&h, content)
	if skip || err != nil {
		return out, err
	}

	if h.attributes&attrCompression != 0 {
		if err := d.openCompressed(&h, content, out); err != nil {
			return out, err
		}
		return d.decodeCompressed(from)
	}

	if err := d.decodeRecords(&h, content, from); err != nil {
		d.Records = d.Records[:out.RecordsBefore]
		return out, err
	}

	return out, nil
}

// decodeRecords decodes the records of an uncompressed batch.
func (d *Decoder) decodeRecords(h *batchHeader, content []byte, from int64) error {
	r := FieldReader{B: content}
	lastDelta := int64(-1)
	for range h.recordCount {
		record := FieldReader{B: r.Take(r.varlen())}
		record.Bad = r.Bad
		if err := d.decodeRecord(h, &record, &lastDelta, from); err != nil {
			return err
		}
	}

	if len(r.B) != 0 {
		return corruptError("a batch with data after its last record")
	}

	return nil
}

// decodeRecord reads one record, and skips it if its offset is below from. lastDelta is the offset
// delta of the record before it, and becomes its own.
func (d *Decoder) decodeRecord(h *batchHeader, r *FieldReader, lastDelta *int64, from int64) error {
	ms, delta := r.recordHead(h)
	key := r.varbytes()
	value := r.varbytes()
	headersBefore := len(d.headers)
	headers, ok := d.decodeHeaders(r)
	if r.Bad || !ok || len(r.B) != 0 {
		return corruptError("a malformed record")
	}
	if delta <= *lastDelta || delta > h.lastOffset-h.baseOffset {
		return corruptError("records whose offsets do not rise")
	}

	*lastDelta = delta
	if h.baseOffset+delta < from {
		d.headers = d.headers[:headersBefore]
		return nil
	}

	d.Records = append(d.Records, Record{
		Topic: d.Topic, Partition: d.Partition, Offset: h.baseOffset + delta, LeaderEpoch: h.epoch,
		Time: time.UnixMilli(ms), Key: key, Value: value, Headers: headers,
	})

	return nil
}

// recordHead decodes what precedes the key of a record: its time in Unix milliseconds and
// its offset delta.
func (r *FieldReader) recordHead(h *batchHeader) (ms, delta int64) {
	r.Int8() // attributes: none are defined
	ms = h.firstTime + r.varint()
	delta = r.varint()
	if h.attributes&attrLogAppendTime != 0 {
		ms = h.maxTime
	}
	return ms, delta
}

// decodeOversized reads the first bytes of a record of size bytes: its key, if they have it.
func (d *Decoder) decodeOversized(h *batchHeader, r *FieldReader, lastDelta *int64, from int64, size int) error {
	ms, delta := r.recordHead(h)
	if r.Bad || delta <= *lastDelta || delta > h.lastOffset-h.baseOffset {
		return corruptError("records whose offsets do not rise")
	}

	*lastDelta = delta
	if h.baseOffset+delta < from {
		return nil
	}

	key := cloneBytes(r.varbytes()) // the window is used again
	if r.Bad {
		key = nil
	}

	d.Records = append(d.Records, Record{
		Topic: d.Topic, Partition: d.Partition, Offset: h.baseOffset + delta, LeaderEpoch: h.epoch,
		Time: time.UnixMilli(ms), Key: key, Oversized: size,
	})

	return nil
}

func (d *Decoder) decodeHeaders(r *FieldReader) ([]Header, bool) {
	count := r.varint()
	if count == 0 {
		return nil, true
	}
	if count < 0 || count > int64(len(r.B)/2) { // each takes at least two bytes
		return nil, false
	}

	start := len(d.headers)
	for range count {
		name := r.varbytes()
		d.headers = append(d.headers, Header{d.internHeaderName(name), r.varbytes()})
	}

	// With this capacity, an append by a user of the record cannot write into the next one's headers.
	return d.headers[start:len(d.headers):len(d.headers)], true
}

// internHeaderName returns b as a string, allocated once per name.
func (d *Decoder) internHeaderName(b []byte) string {
	if s, ok := d.headerNames[string(b)]; ok {
		return s
	}

	s := string(b)
	if d.headerNames == nil {
		d.headerNames = map[string]string{}
	}
	if len(d.headerNames) < maxHeaderNames {
		d.headerNames[s] = s
	}

	return s
}
