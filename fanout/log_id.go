package fanout

import (
	"context"
	"fmt"
	"sync/atomic"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// logID is the first 8 bytes of the topic id that Kafka assigned when the topic
// was created. Zero: unknown.
type logID [8]byte

// logIdentity is the id of the log that the node's streams read.
type logIdentity struct {
	log     Log
	current atomic.Pointer[logID]
}

// id returns the id as of the last look-up; zero: unknown.
func (l *logIdentity) id() logID {
	id := l.current.Load()
	if id != nil {
		return *id
	}
	return logID{}
}

// lookUp looks up the id.
func (l *logIdentity) lookUp(ctx context.Context) error {
	full, err := l.log.TopicID(ctx, event.TopicEvents)
	if err != nil {
		return fmt.Errorf("identifying the log: %w", err)
	}
	id := shortLogID(full)
	l.current.Store(&id)
	return nil
}

// shortLogID returns the logID of a topic id.
func shortLogID(full kafka.TopicID) (id logID) {
	copy(id[:], full[:])
	return id
}

// checkLogID disconnects a subscriber whose cursor is of another log than its streams
// read: a stream may detect later than others that the topic was recreated, and its
// positions must not get into a cursor of the new log.
func (f *Fanout) checkLogID(s *subscriber) {
	if !s.hasSameLogID(f.followedPartitions) {
		f.disconnect(s, DisconnectEventsLost)
	}
}

// checkLogIDs calls checkLogID for the subscribers of a partition.
func (f *Fanout) checkLogIDs(partition int) {
	for _, s := range f.subscribers.listConnected() {
		if s.follows(partition) {
			f.checkLogID(s)
		}
	}
}

func (s *subscriber) hasSameLogID(streams *followedPartitions) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.cursorTracker == nil {
		return true
	}

	for p := range s.partitions.interest.all() {
		switch id := shortLogID(streams.stream(p).deliveredPosition().TopicID); {
		case id == logID{}:
		// The id was unknown when the subscriber was admitted: it is that of the log which it is read from.
		case s.cursorTracker.logID == logID{}:
			s.cursorTracker.logID = id
		case s.cursorTracker.logID != id:
			return false
		}
	}

	return true
}

// matches reports whether id is the short form of the full topic id in text; an
// unknown id matches all.
func (id logID) matches(text string) bool {
	full, err := kafka.ParseTopicID(text)
	return id == logID{} || err != nil || id == logID(full[:len(id)])
}
