package fanout

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"trunkline/internal/kafka"
)

// lateness is how far a stream has been behind the log. The nodes share it, so
// that a plain event id can be resumed from on any of them: what the client had
// not yet been given of another partition is no older than this.
type lateness struct {
	mu      sync.Mutex
	current Reader
	caught  time.Time     // when the stream had last delivered all there was
	worst   time.Duration // of a record, from its normalizing to its delivery
}

// reads notes the reader that can say whether there is anything new.
func (l *lateness) reads(r Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = r
	if l.caught.IsZero() {
		l.caught = time.Now() // it begins at the end of the log
	}
}

// delivered notes records read at that time; all says that the log had no more.
func (l *lateness) delivered(records []kafka.Record, read time.Time, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all && read.After(l.caught) {
		l.caught = read
	}
	if at, ok := processedAt(records[0].Value); ok {
		l.worst = max(l.worst, time.Since(at))
	}
}

// take is the worst since it was last asked: a record that came late, or the
// time since the stream last knew that there was nothing more.
func (l *lateness) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	caught := l.caught
	if l.current != nil {
		if idle := l.current.Idle(); idle.After(caught) {
			caught = idle
		}
	}
	worst := max(l.worst, now.Sub(caught))
	l.worst = 0
	return worst
}

var processedField = []byte(`"processed_at":`)

// processedAt is when a message was normalized. event.Message.Append writes it
// near the end, behind whatever data holds.
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
