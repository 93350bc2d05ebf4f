package feed

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"trunkline/internal/kafka"
)

// entry is a record in a queue.
type entry struct {
	readAt   time.Time // when it was read from the platform
	record   kafka.Record
	delivery uint64 // of an Acknowledger's event; not stored in the spool
}

var (
	errTruncated = errors.New("the record extends beyond the end")
	errDamaged   = errors.New("the record is damaged")
)

// parseEntries parses complete records in b and returns their size in bytes. The error is the reason
// for stopping before the end of b. Entries share the memory of b.
func parseEntries(b []byte) (entries []entry, used int, err error) {
	for used < len(b) {
		rest := b[used:]
		if len(rest) < recordHeader {
			return entries, used, errTruncated
		}
		size := binary.BigEndian.Uint32(rest)
		if size == 0 || size > maxRecord {
			return entries, used, errDamaged
		}
		if int(size) > len(rest)-recordHeader {
			return entries, used, errTruncated
		}
		body := rest[recordHeader:][:size]
		if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(rest[4:]) {
			return entries, used, errDamaged
		}
		e, ok := parseEntry(body)
		if !ok {
			return entries, used, errDamaged
		}
		entries = append(entries, e)
		used += recordHeader + int(size)
	}
	return entries, used, nil
}

// appendEntry appends the bytes of a record: time, topic, key, headers, value.
func appendEntry(b []byte, e *entry) []byte {
	b = binary.AppendVarint(b, e.readAt.UnixMilli())
	b = appendText(b, e.record.Topic)
	b = appendText(b, e.record.Key)
	b = binary.AppendUvarint(b, uint64(len(e.record.Headers)))
	for _, h := range e.record.Headers {
		b = appendText(appendText(b, h.Key), h.Value)
	}
	return appendText(b, e.record.Value)
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func parseEntry(b []byte) (e entry, ok bool) {
	at, n := binary.Varint(b)
	if n <= 0 {
		return e, false
	}
	b = b[n:]
	text := func() []byte {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			ok = false
			return nil
		}
		t := b[n:][:size:size]
		b = b[n+int(size):]
		return t
	}
	ok = true
	e.readAt = time.UnixMilli(at)
	e.record.Partition = kafka.AnyPartition
	e.record.Topic = string(text())
	if key := text(); len(key) > 0 {
		e.record.Key = key
	}
	count, n := binary.Uvarint(b)
	if !ok || n <= 0 || count > uint64(len(b)) {
		return e, false
	}
	b = b[n:]
	e.record.Headers = make([]kafka.Header, 0, min(count, 16))
	for range count {
		key := text()
		e.record.Headers = append(e.record.Headers, kafka.Header{Key: string(key), Value: text()})
		if !ok {
			return e, false
		}
	}
	e.record.Value = text()
	return e, ok && len(b) == 0
}
