package fanout

import (
	"bytes"
	"strconv"
	"sync"
	"time"
)

// deliveryLag measures how far the delivery of a partition has been behind the log.
// Nodes share the result: it bounds the age of events in other partitions that a
// client which resumes by id may not have received.
type deliveryLag struct {
	mu      sync.Mutex
	reader  Reader
	current time.Time     // when everything in the log was last delivered; initially when the stream was created
	worst   time.Duration // longest time from normalization to delivery
}

// readFrom sets the reader that supplies Idle.
func (l *deliveryLag) readFrom(r Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reader = r
}

// delivered records that records read at read were delivered; the first of them was
// normalized at made, if known. all: the log had no more records.
func (l *deliveryLag) delivered(made time.Time, known bool, read time.Time, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all && read.After(l.current) {
		l.current = read
	}
	if known {
		l.worst = max(l.worst, time.Since(made))
	}
}

// take returns the longest lag since the last call: of a record, or the time since the
// stream last reached the end of the log.
func (l *deliveryLag) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.current
	if l.reader != nil {
		if idle := l.reader.Idle(); idle.After(current) {
			current = idle
		}
	}
	worst := max(l.worst, now.Sub(current))
	l.worst = 0
	return worst
}

var processedField = []byte(`"processed_at":`)

// processedAt returns when a message was normalized. It searches from the end:
// event.Message.Append writes processed_at after data.
func processedAt(message []byte) (time.Time, bool) {
	at := bytes.LastIndex(message, processedField)
	if at < 0 {
		return time.Time{}, false
	}
	digits := message[at+len(processedField):]
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	seconds, err := strconv.ParseInt(string(digits[:n]), 10, 64)
	return time.Unix(seconds, 0), err == nil
}
