package kafka

import (
	"encoding/binary"
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

// tooLarge reports whether a broker rejected a batch for its size. The broker has
// neither written it nor counted its sequence.
func tooLarge(err error) bool {
	return errors.Is(err, kafkago.MessageSizeTooLarge) || errors.Is(err, kafkago.RecordListTooLarge)
}

// halves splits a batch of several records in two. A topic may have a smaller limit
// than BatchBytes: then a batch of records that individually fit is sent in parts, and
// only a record that exceeds the limit by itself fails.
func (b *batch) halves(prefix []byte) ([2]*batch, error) {
	var parts [2]*batch
	records, err := b.uncompressed(len(prefix))
	if err != nil {
		return parts, err
	}
	waiting := b.waiting
	var used int // records of waiting[0] in the first half
	for i, size := range [2]int{b.records / 2, b.records - b.records/2} {
		part := &batch{base: -1, started: b.started, deadline: b.deadline, uncertain: b.uncertain}
		part.frame = append(append([]byte(nil), prefix...), make([]byte, batchOverhead)...)
		for range size {
			records = part.appendEncoded(records, b.firstTime)
			if n := len(part.waiting); n > 0 && part.waiting[n-1].call == waiting[0].call {
				part.waiting[n-1].records++
			} else {
				part.waiting = append(part.waiting, share{waiting[0].call, 1})
			}
			if used++; used == waiting[0].records {
				waiting, used = waiting[1:], 0
			}
		}
		parts[i] = part
	}
	return parts, nil
}

// appendEncoded moves the first of the encoded records to b and returns the remaining
// ones. firstTime is the base timestamp of their batch. See appendRecord for the
// encoding.
func (b *batch) appendEncoded(records []byte, firstTime int64) (rest []byte) {
	length, n := binary.Varint(records)
	record, rest := records[n:n+int(length)], records[n+int(length):]
	attributes := record[0]
	timeDelta, n := binary.Varint(record[1:])
	record = record[1+n:]
	_, n = binary.Varint(record) // its offset delta in the other batch
	record = record[n:]

	ms := firstTime + timeDelta
	if b.records == 0 {
		b.firstTime, b.maxMs = ms, ms
	}
	b.maxMs = max(b.maxMs, ms)
	timeDelta, place := ms-b.firstTime, int64(b.records)
	b.frame = binary.AppendVarint(b.frame, int64(1+sizeVarint(timeDelta)+sizeVarint(place)+len(record)))
	b.frame = append(b.frame, attributes)
	b.frame = binary.AppendVarint(b.frame, timeDelta)
	b.frame = binary.AppendVarint(b.frame, place)
	b.frame = append(b.frame, record...)
	b.records++
	return rest
}
