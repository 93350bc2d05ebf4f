package feed

import (
	"fmt"
	"os"
)

const batchBytes = 900_000 // of one Produce: one batch of a partition

// Next returns the next records before limit, if there are any, and the position after them. The
// records are valid until the next call.
func (s *spool) Next(limit position) (entries []entry, next position, err error) {
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

// openHeadSegment opens the segment of next.
func (s *spool) openHeadSegment() error {
	if s.reader != nil && s.readerSegment == s.head.segment {
		return nil
	}
	if s.reader != nil {
		_ = s.reader.Close() // opened for reading only
		s.reader = nil
	}
	if first, ok := s.firstSegmentFrom(s.head.segment); ok && first != s.head.segment {
		s.head = position{first, 0}
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

// nextSegment moves next to the next segment. It returns false if there is none before limit.
func (s *spool) nextSegment(limit position) bool {
	following, ok := s.firstSegmentFrom(s.head.segment + 1)
	if !ok || limit.segment < following {
		return false
	}
	s.head = position{following, 0}
	return true
}

// readBatch reads about batchBytes of records of the current segment, up to end.
func (s *spool) readBatch(end int64) ([]entry, error) {
	size := int(min(end-s.head.offset, batchBytes))
	if size <= 0 {
		return nil, nil
	}
	chunk, err := s.readAt(size)
	if err != nil {
		return nil, err
	}
	entries, used, problem := parseEntries(chunk)
	if problem == errTruncated && len(entries) == 0 && int64(size) < end-s.head.offset { // a record larger than the chunk
		if chunk, err = s.readAt(int(min(end-s.head.offset, maxRecord+recordHeader))); err != nil {
			return nil, err
		}
		entries, used, problem = parseEntries(chunk)
	}
	whole := int64(len(chunk)) == end-s.head.offset
	if len(entries) == 0 && (problem == errDamaged || problem == errTruncated) && (whole || problem == errDamaged) {
		return nil, s.skipDamage(end)
	}
	s.head.offset += int64(used)
	return entries, nil
}

func (s *spool) readAt(size int) ([]byte, error) {
	if cap(s.chunk) < size {
		s.chunk = make([]byte, max(size, 64<<10))
	}
	chunk := s.chunk[:size]
	if _, err := s.reader.ReadAt(chunk, s.head.offset); err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	return chunk, nil
}

// skipDamage skips damaged bytes up to the next complete record of the segment, or to its end. A record
// whose write was interrupted by the end of the process is at the end of its segment.
func (s *spool) skipDamage(end int64) error {
	rest := make([]byte, end-s.head.offset)
	if _, err := s.reader.ReadAt(rest, s.head.offset); err != nil {
		return fmt.Errorf("reading the spool: %w", err)
	}
	for at := 1; at+recordHeader < len(rest); at++ {
		if found, _, _ := parseEntries(rest[at:min(len(rest), at+maxRecord+recordHeader)]); len(found) > 0 {
			s.log.Error("damage in the spool: records lost", "file", s.segmentPath(s.head.segment), "offset", s.head.offset, "bytes", at)
			s.onLost(1)
			s.head.offset += int64(at)
			return nil
		}
	}
	s.log.Warn("last record of a spool segment incomplete", "file", s.segmentPath(s.head.segment), "offset", s.head.offset, "bytes", len(rest))
	s.head.offset = end
	return nil
}
