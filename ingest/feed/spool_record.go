package feed

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"trunkline/internal/kafka"
)

// queueEntry is a record in a queue.
type queueEntry struct {
	readAt   time.Time // when it was read from the platform
	record   kafka.Record
	delivery uint64 // of an Acknowledger's event; not stored in the spool
	number   spoolNumber
}

// spoolNumber numbers the records that a process appends to the spool, from 1. It shows how many records
// are missing between two others. The zero value is no number.
type spoolNumber struct {
	process uint32 // first segment of the process
	record  uint64
}

// after returns the number of records that are missing between last and n: of n's process only, if
// another one has appended last.
func (n spoolNumber) after(last spoolNumber) uint64 {
	switch {
	case n.record == 0 || last.record == 0:
		return 0
	case n.process != last.process:
		return n.record - 1
	case n.record <= last.record: // the checkpoint was not written
		return 0
	}
	return n.record - last.record - 1
}

// numberHeader is the key of the header that has a record's number in the spool. It is not sent to Kafka.
const numberHeader = "spool_number"

var (
	errTruncated = errors.New("the record extends beyond the end")
	errDamaged   = errors.New("the record is damaged")
)

// parseEntries parses complete records in b and returns their size in bytes. The error is the reason
// for stopping before the end of b. Entries share the memory of b.
func parseEntries(b []byte) (entries []queueEntry, used int, err error) {
	for used < len(b) {
		rest := b[used:]
		if len(rest) < recordHeader {
			return entries, used, errTruncated
		}

		size := binary.BigEndian.Uint32(rest)
		if size == 0 || size > maxRecordBytes {
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

// nextWholeRecord returns the offset above 0 of the first whole record in b, which begins with damage. It
// is the length of b if there is none.
func nextWholeRecord(b []byte) int {
	for at := 1; at+recordHeader < len(b); at++ {
		size := binary.BigEndian.Uint32(b[at:])
		if size == 0 || size > maxRecordBytes || int(size) > len(b)-at-recordHeader {
			continue
		}

		_, _, err := parseEntries(b[at:][:recordHeader+int(size)])
		if err == nil {
			return at
		}
	}

	return len(b)
}

// parseWithoutLength parses the one record that fills b, whose length may be damaged.
func parseWithoutLength(b []byte) (queueEntry, bool) {
	if len(b) <= recordHeader || crc32.Checksum(b[recordHeader:], castagnoli) != binary.BigEndian.Uint32(b[4:]) {
		return queueEntry{}, false
	}
	return parseEntry(b[recordHeader:])
}

// isTorn reports whether b, the end of a segment without a whole record, is a record whose write was
// interrupted: it is shorter than its length says, or its last bytes, the end of a JSON object, are zero
// because the disk never got them.
func isTorn(b []byte) bool {
	_, _, err := parseEntries(b)
	return err == errTruncated || b[len(b)-1] == 0
}

// appendEntry appends the bytes of a record: time, topic, key, headers with its number, value.
func appendEntry(b []byte, e *queueEntry) []byte {
	b = binary.AppendVarint(b, e.readAt.UnixMilli())
	b = appendText(b, e.record.Topic)
	b = appendText(b, e.record.Key)

	if e.number.record == 0 {
		b = binary.AppendUvarint(b, uint64(len(e.record.Headers)))
	} else {
		var number [2 * binary.MaxVarintLen64]byte
		n := binary.PutUvarint(number[:], uint64(e.number.process))
		n += binary.PutUvarint(number[n:], e.number.record)
		b = binary.AppendUvarint(b, uint64(len(e.record.Headers)+1))
		b = appendText(appendText(b, numberHeader), number[:n])
	}

	for _, h := range e.record.Headers {
		b = appendText(appendText(b, h.Key), h.Value)
	}

	return appendText(b, e.record.Value)
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// parseEntry parses what appendEntry has written.
func parseEntry(b []byte) (e queueEntry, ok bool) {
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
	key := text()
	if len(key) > 0 {
		e.record.Key = key
	}

	count, n := binary.Uvarint(b)
	if !ok || n <= 0 || count > uint64(len(b)) {
		return e, false
	}

	b = b[n:]
	e.record.Headers = make([]kafka.Header, 0, min(count, 16))
	for range count {
		key, value := text(), text()
		if !ok {
			return e, false
		}
		if string(key) == numberHeader {
			e.number = parseNumber(value)
			continue
		}

		e.record.Headers = append(e.record.Headers, kafka.Header{Key: string(key), Value: value})
	}

	e.record.Value = text()
	return e, ok && len(b) == 0
}

// parseNumber returns the number in the header numberHeader, the zero value if it is none.
func parseNumber(b []byte) spoolNumber {
	process, n := binary.Uvarint(b)
	if n <= 0 {
		return spoolNumber{}
	}
	record, _ := binary.Uvarint(b[n:])
	return spoolNumber{uint32(process), record}
}
