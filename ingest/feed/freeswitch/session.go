package freeswitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/format/freeswitch"
	"trunkline/ingest/feed"
	"trunkline/internal/jsonscan"
	"trunkline/telephony/esl"
)

// apiEvent is the event of a command that was run on the switch.
const apiEvent = "API"

var (
	errShutdown = errors.New("the switch is shutting down")
	errSilent   = errors.New("the connection is silent and the switch does not answer")
)

// session is one connection. Only Read uses the fields before mu.
type session struct {
	*platform
	conn        *esl.Conn
	connectedAt time.Time

	reader     freeswitch.LiveReader
	batch      []feed.Event
	coreUUID   string // Core-UUID of the last event: the run of the switch
	sequence   esl.LossDetector
	heartbeats heartbeatGaps
	endError   error // returned by the next Read

	accountCache accountCache

	mu             sync.Mutex
	notes          []string  // of its snapshots
	recent         recentIDs // of objects with events within tableLag
	queuesChangeAt time.Time // of the last command that changes agents, tiers or queues
}

func newSession(p *platform, conn *esl.Conn) *session {
	return &session{platform: p, conn: conn, connectedAt: time.Now(), reader: freeswitch.LiveReader{Keys: p.keys}}
}

// Close implements feed.Session.
func (s *session) Close() error {
	s.conn.Close()
	return nil
}

// Read implements feed.Session.
func (s *session) Read(ctx context.Context) ([]feed.Event, error) {
	idle := time.NewTimer(s.idleAfter)
	defer idle.Stop()

	for {
		// Events that arrived before the end are returned before the error.
		ended := s.conn.Err()
		arrived := s.conn.Take()
		batch := s.convertEvents(ctx, arrived)
		if len(batch) > 0 {
			return batch, nil
		}

		switch {
		case s.endError != nil:
			return nil, s.endError
		case ended != nil:
			return nil, ended
		case len(arrived) > 0:
			idle.Reset(s.idleAfter)
		}

		select {
		case <-s.conn.Arrived():
		case <-s.conn.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-idle.C:
			if err := s.checkResponds(ctx); err != nil {
				return nil, err
			}
			idle.Reset(s.idleAfter)
		}
	}
}

// checkResponds sends a command to check that the switch responds.
func (s *session) checkResponds(ctx context.Context) error {
	_, err := s.conn.API(ctx, "status")
	if err != nil && !isRefusal(err) {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return nil
}

// convertEvents converts events in the order of arrival.
func (s *session) convertEvents(ctx context.Context, arrived []*esl.Event) []feed.Event {
	clear(s.batch)
	s.batch = s.batch[:0]
	now := time.Now()

	for _, received := range arrived {
		e := s.convertEvent(ctx, received.Raw(), now)
		if e.Value != nil || e.Hole > 0 || e.Resync {
			s.batch = append(s.batch, e)
		}
	}

	return s.batch
}

// convertEvent returns the record to store for an event.
func (s *session) convertEvent(ctx context.Context, raw []byte, now time.Time) feed.Event {
	read, err := s.reader.Read(raw)
	if errors.Is(err, jsonscan.ErrUTF8) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
		read, err = s.reader.Read(raw)
	}
	if err != nil {
		s.log.Warn("unreadable event of the switch", "error", err)
		// What it reported is lost: a resync finds it.
		return feed.Event{Hole: 1}
	}

	queuesChanged := changesQueues(read.Command)
	out := feed.Event{Resync: s.noteRun(read.CoreUUID) || queuesChanged || read.BridgeFailed}
	out.Hole = s.countMissing(&read)

	if read.Name == "SHUTDOWN" {
		s.endError = errShutdown
	}

	// Known before the resync that it requests: its snapshot waits for the module's tables.
	if queuesChanged {
		s.mu.Lock()
		s.queuesChangeAt = now
		s.mu.Unlock()
	}

	if s.isSessionOnly(read.Name) {
		return out
	}

	out.Topic, out.Format, out.Value = event.TopicRaw, read.Format, raw
	out.Account, out.Names = s.account(ctx, &read)
	if read.CoreUUID != "" && read.Number != 0 {
		out.Identity = feed.Identity{Run: read.CoreUUID, Number: read.Number}
	}

	out.Subjects = subjects(&read.Facts)
	s.mu.Lock()
	// The core's tables may not have it yet, see feed.Snapshot.
	s.recent.add(now, now.Add(-s.tableLag), out.Subjects)
	s.mu.Unlock()

	return out
}

// isSessionOnly reports whether an event is for the session only and not stored.
func (s *session) isSessionOnly(name string) bool {
	return (name == apiEvent || slices.Contains(ownEvents, name)) && !s.eventList.storedEvents[name]
}

// countMissing returns the number of events that are missing before this one.
func (s *session) countMissing(e *freeswitch.LiveEvent) (lost uint64) {
	if s.eventList.isAll() && e.Number != 0 {
		lost = s.sequence.Record(e.Number)
	}
	if e.Name == "HEARTBEAT" {
		lost += s.heartbeats.add(e.Micros)
	}
	return lost
}

// noteRun records the run of an event, and reports whether it is not that of the event before: the switch was
// restarted.
func (s *session) noteRun(run string) bool {
	if run == "" || run == s.coreUUID {
		return false
	}
	before := s.coreUUID
	// A switch that was started again counts from the beginning.
	s.coreUUID, s.sequence, s.heartbeats = run, esl.LossDetector{}, heartbeatGaps{}
	return before != ""
}

// queueCommands has the commands, in lower case, that change agents, tiers or queues without a specific
// event.
var queueCommands = []string{
	"callcenter_config agent add ", "callcenter_config agent del ", "callcenter_config agent reload ",
	"callcenter_config tier add ", "callcenter_config tier del ", "callcenter_config tier reload ",
	"callcenter_config queue load ", "callcenter_config queue unload ", "callcenter_config queue reload ",
	"load mod_callcenter ", "unload mod_callcenter ", "reload mod_callcenter ",
	"unload -f mod_callcenter ", "reload -f mod_callcenter ",
}

// changesQueues reports whether a command changes agents, tiers or queues without a specific event. The
// switch takes commands in any case of letters.
func changesQueues(command string) bool {
	command = strings.ToLower(strings.Join(strings.Fields(command), " ")) + " "
	return slices.ContainsFunc(queueCommands, func(known string) bool { return strings.HasPrefix(command, known) })
}

// subjects returns the ids of an event's agent and call.
func subjects(f *event.Facts) []string {
	switch {
	case f.AgentID != "" && f.CallID != "":
		return []string{f.AgentID, f.CallID}
	case f.AgentID != "":
		return []string{f.AgentID}
	case f.CallID != "":
		return []string{f.CallID}
	}
	return nil
}

// addNote adds a note to the session's snapshots.
func (s *session) addNote(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = addOnce(s.notes, text)
}
