package pcmsocket

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// asteriskQueue has the state of a connection of chan_websocket: whether Asterisk's queue of audio is full, and what
// waits until Asterisk reports that the queue has been played.
type asteriskQueue struct {
	json bool // control messages are JSON

	mu        sync.Mutex
	queueFull bool           // Asterisk's queue is full
	lastMark  int64          // number of the newest mark
	marks     []asteriskMark // wait for MEDIA_MARK_PROCESSED, in order
}

// asteriskMark is a mark in Asterisk's queue; its number is the correlation_id. done is called when it is played.
type asteriskMark struct {
	number int64
	done   func()
}

// command returns a command as the dialplan wants it.
func (a *asteriskQueue) command(name string) []byte {
	if !a.json {
		return []byte(name)
	}
	return []byte(`{"command":"` + name + `"}`)
}

// markCommand returns the command that puts a mark behind the audio so far.
func (a *asteriskQueue) markCommand(number int64) []byte {
	if !a.json {
		return fmt.Appendf(nil, "%s %d", commandMark, number)
	}
	return fmt.Appendf(nil, `{"command":"%s","correlation_id":"%d"}`, commandMark, number)
}

// setQueueFull pauses or resumes audio.
func (a *asteriskQueue) setQueueFull(full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queueFull = full
}

func (a *asteriskQueue) isQueueFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queueFull
}

// addMark stores a mark and returns its number.
func (a *asteriskQueue) addMark(done func()) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastMark++
	a.marks = append(a.marks, asteriskMark{a.lastMark, done})
	return a.lastMark
}

// takePlayedMarks removes and returns the mark that Asterisk names, and those before it: it plays them in order. A
// mark that is not there was reported when the queue was flushed, and Asterisk's report crossed the command.
func (a *asteriskQueue) takePlayedMarks(correlationID string) []asteriskMark {
	number, err := strconv.ParseInt(correlationID, 10, 64)
	if err != nil {
		return nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	n := slices.IndexFunc(a.marks, func(m asteriskMark) bool { return m.number == number }) + 1
	played := a.marks[:n:n]
	a.marks = a.marks[n:]
	return played
}

// takeAllMarks removes and returns all marks.
func (a *asteriskQueue) takeAllMarks() []asteriskMark {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.marks
	a.marks = nil
	return all
}
