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
	conn      *esl.Conn
	connected time.Time

	reader     freeswitch.LiveReader
	batch      []feed.Event
	run        string // Core-UUID
	sequence   esl.LossDetector
	heartbeats heartbeats
	ended      error // returned by the next Read

	known tenants

	mu     sync.Mutex
	notes  []string
	recent recentIDs
}

func newSession(p *platform, conn *esl.Conn) *session {
	return &session{platform: p, conn: conn, connected: time.Now(), reader: freeswitch.LiveReader{Keys: p.keys}}
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
		if batch := s.events(ctx, arrived); len(batch) > 0 {
			return batch, nil
		}
		switch {
		case s.ended != nil:
			return nil, s.ended
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
			if err := s.probe(ctx); err != nil {
				return nil, err
			}
			idle.Reset(s.idleAfter)
		}
	}
}

// probe sends a command to check that the switch responds.
func (s *session) probe(ctx context.Context) error {
	if _, err := s.conn.API(ctx, "status"); err != nil && !refused(err) {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return nil
}

// events converts events in the order of arrival.
func (s *session) events(ctx context.Context, arrived []*esl.Event) []feed.Event {
	clear(s.batch)
	s.batch = s.batch[:0]
	now := time.Now()
	for _, one := range arrived {
		if e := s.event(ctx, one.Raw(), now); e.Value != nil || e.Hole > 0 || e.Resync {
			s.batch = append(s.batch, e)
		}
	}
	return s.batch
}

// event returns the record to store for an event.
func (s *session) event(ctx context.Context, raw []byte, now time.Time) feed.Event {
	read, err := s.reader.Read(raw)
	if errors.Is(err, jsonscan.ErrUTF8) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
		read, err = s.reader.Read(raw)
	}
	if err != nil {
		s.log.Warn("unreadable event of the switch", "error", err)
		return feed.Event{Hole: 1}
	}
	out := feed.Event{Resync: s.restarted(read.Run) || changesQueues(&read) || read.BridgeFailed}
	out.Hole = s.hole(&read)
	if read.Name == "SHUTDOWN" {
		s.ended = errShutdown
	}
	if s.own(read.Name) {
		return out
	}
	out.Topic, out.Format, out.Value = event.TopicRaw, read.Format, raw
	out.Account, out.Names = s.account(ctx, &read)
	if read.Run != "" && read.Number != 0 {
		out.Identity = feed.Identity{Run: read.Run, Number: read.Number}
	}
	out.Subjects = subjects(&read.Facts)
	s.mu.Lock()
	s.recent.add(now, now.Add(-s.tableLag), out.Subjects)
	s.mu.Unlock()
	return out
}

// own reports whether an event is for the session only and not stored.
func (s *session) own(name string) bool {
	return (name == apiEvent || slices.Contains(ownEvents, name)) && !s.wanted.stored[name]
}

// hole returns the number of events that are missing before this one.
func (s *session) hole(e *freeswitch.LiveEvent) (lost uint64) {
	if s.wanted.all() && e.Number != 0 {
		lost = s.sequence.Record(e.Number)
	}
	if e.Name == "HEARTBEAT" {
		lost += s.heartbeats.note(e.Micros)
	}
	return lost
}

// restarted reports whether run is not the run of the previous event.
func (s *session) restarted(run string) bool {
	if run == "" || run == s.run {
		return false
	}
	before := s.run
	s.run, s.sequence, s.heartbeats = run, esl.LossDetector{}, heartbeats{}
	return before != ""
}

// queueCommands has the commands that change agents, tiers or queues without a specific event.
var queueCommands = []string{
	"callcenter_config agent add", "callcenter_config agent del", "callcenter_config tier add", "callcenter_config tier del",
	"callcenter_config queue load", "callcenter_config queue unload", "callcenter_config queue reload",
	"load mod_callcenter", "unload mod_callcenter", "reload mod_callcenter",
}

func changesQueues(e *freeswitch.LiveEvent) bool {
	return e.Command != "" && slices.ContainsFunc(queueCommands, func(command string) bool {
		return strings.HasPrefix(strings.Join(strings.Fields(e.Command), " "), command)
	})
}

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

// note adds a note to the session's snapshots.
func (s *session) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = addOnce(s.notes, text)
}

// heartbeats finds missing HEARTBEATs by the time between them. The zero value is
// ready to use.
type heartbeats struct {
	last, interval int64 // µs; the shortest interval seen
	longer         int   // number of longer intervals in a row
}

const (
	shortestHeartbeat = 900_000 // µs; the switch's setting is in whole seconds
	// longerHeartbeats is the number of longer intervals in a row after which the shortest one is
	// taken for the effect of a clock that was set back.
	longerHeartbeats = 3
)

// note records a HEARTBEAT and returns how many are missing before it.
func (h *heartbeats) note(at int64) (missing uint64) {
	passed := at - h.last
	first := h.last == 0
	h.last = at
	switch {
	case first, passed < shortestHeartbeat: // first HEARTBEAT, or the switch's clock was set back
		return 0
	case h.interval == 0, passed < h.interval:
		h.interval, h.longer = passed, 0
		return 0
	}
	missing = (uint64(passed)+uint64(h.interval)/2)/uint64(h.interval) - 1
	if missing == 0 {
		h.longer = 0
	} else if h.longer++; h.longer == longerHeartbeats {
		h.interval, h.longer = passed, 0
		return 0
	}
	return missing
}

// recentIDs has the ids of objects with recent events.
type recentIDs struct {
	times []time.Time
	ids   []string
}

// add adds ids and deletes those before since.
func (r *recentIDs) add(now, since time.Time, ids []string) {
	r.forget(since)
	for _, id := range ids {
		r.times, r.ids = append(r.times, now), append(r.ids, id)
	}
}

// since returns the ids since a time, each once.
func (r *recentIDs) since(since time.Time) []string {
	r.forget(since)
	ids := slices.Clone(r.ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (r *recentIDs) forget(since time.Time) {
	old := 0
	for old < len(r.times) && r.times[old].Before(since) {
		old++
	}
	r.times, r.ids = r.times[old:], r.ids[old:]
}
