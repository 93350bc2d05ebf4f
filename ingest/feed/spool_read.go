package feed

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const batchBytes = 900_000 // of one Produce: one batch of a partition

// Next returns the next records before limit, if there are any, and the position after them. The
// records are valid until the next call.
func (s *spool) Next(limit queuePosition) (entries []queueEntry, next queuePosition, err error) {
	for {
		if !s.head.before(limit) {
			return nil, s.head, nil
		}
		if err := s.openHeadSegment(); err != nil {
			return nil, s.head, err
		}

		end := s.segmentEnd(s.head.segment)
		if limit.segment == s.head.segment {
			end = min(end, limit.offset)
		}

		entries, err = s.readBatch(end)
		if err != nil || len(entries) > 0 {
			return entries, s.head, err
		}

		if s.head.offset < end { // behind damaged bytes
			continue
		}
		if !s.nextSegment(limit) {
			return nil, s.head, nil
		}
	}
}

// segmentEnd returns the offset up to which a segment may be read.
func (s *spool) segmentEnd(segment uint64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sizes[segment]
}

// openHeadSegment opens the head's segment, or the next one that exists.
func (s *spool) openHeadSegment() error {
	if s.reader != nil && s.readerSegment == s.head.segment {
		return nil
	}
	if s.reader != nil {
		_ = s.reader.Close() // opened for reading only
		s.reader = nil
	}
	if first, ok := s.firstSegmentFrom(s.head.segment); ok && first != s.head.segment {
		s.head = queuePosition{first, 0}
	}

	file, err := os.Open(s.segmentPath(s.head.segment))
	if err != nil {
		return fmt.Errorf("opening a segment of the spool: %w", err)
	}

	s.reader, s.readerSegment = file, s.head.segment
	return nil
}

// firstSegmentFrom returns the first segment at or after the given one.
func (s *spool) firstSegmentFrom(segment uint64) (first uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for candidate := range s.sizes {
		if candidate >= segment && (!ok || candidate < first) {
			first, ok = candidate, true
		}
	}
	return first, ok
}

// nextSegment moves the head to the next segment. It returns false if there is none before limit.
func (s *spool) nextSegment(limit queuePosition) bool {
	following, ok := s.firstSegmentFrom(s.head.segment + 1)
	if !ok || limit.segment < following {
		return false
	}
	s.head = queuePosition{following, 0}
	return true
}

// readBatch reads about batchBytes of records of the current segment, up to end. It returns none where it
// has passed damaged bytes only.
func (s *spool) readBatch(end int64) ([]queueEntry, error) {
	rest := end - s.head.offset
	if rest <= 0 {
		return nil, nil
	}

	for _, size := range []int64{batchBytes, maxRecordBytes + recordHeader} { // the second one has any record
		chunk, err := s.readAt(int(min(rest, size)))
		if err != nil {
			return nil, err
		}

		entries, used, problem := parseEntries(chunk)
		if used > 0 {
			s.head.offset += int64(used)
			s.countMissing(entries)
			return entries, nil
		}

		if problem == errDamaged || int64(len(chunk)) == rest {
			break
		}
	}

	return s.passDamage()
}

// readAt reads size bytes at the head. Bytes behind the end of a file that was cut are zero, which is
// damage.
func (s *spool) readAt(size int) ([]byte, error) {
	if cap(s.chunk) < size {
		s.chunk = make([]byte, max(size, 64<<10))
	}

	chunk := s.chunk[:size]
	n, err := s.reader.ReadAt(chunk, s.head.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}

	clear(chunk[n:])
	return chunk, nil
}

// passDamage moves the head behind damaged bytes, to the next whole record of the segment or to its end,
// and reports the loss. A record of which only the length is damaged is returned. A record whose write was
// interrupted by the end of the process is at the end of its segment, and no damage.
func (s *spool) passDamage() ([]queueEntry, error) {
	offset := s.head.offset
	rest, err := s.readAt(int(s.segmentEnd(s.head.segment) - offset))
	if err != nil {
		return nil, err
	}

	s.chunk = nil // it may have a whole segment
	size := nextWholeRecord(rest)
	s.head.offset += int64(size)

	log := s.log.With("file", s.segmentPath(s.head.segment), "offset", offset, "bytes", size)
	if e, ok := parseWithoutLength(rest[:size]); ok {
		log.Warn("damaged length of a record in the spool")
		entries := []queueEntry{e}
		s.countMissing(entries)
		return entries, nil
	}

	if size == len(rest) && isTorn(rest) {
		log.Warn("last record of a spool segment incomplete")
		return nil, nil
	}

	// At least one; countMissing reports the others once the next number is read.
	log.Error("damage in the spool: records lost")
	s.reportedLost++
	s.onLost(1)

	return nil, nil
}

// countMissing reports the records that are missing before and between entries by their numbers, except
// those that were reported when the damage was found. Records without a number are of an earlier version.
func (s *spool) countMissing(entries []queueEntry) {
	for i := range entries {
		number := entries[i].number
		missing := number.after(s.lastRead)
		if missing > s.reportedLost {
			s.log.Error("records missing in the spool", "records", missing)
			s.onLost(int(missing - s.reportedLost))
		}
		s.lastRead, s.reportedLost = number, 0
	}
}
