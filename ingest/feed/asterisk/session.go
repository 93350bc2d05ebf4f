package asterisk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"trunkline/event"
	format "trunkline/format/asterisk"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/telephony/ami"
)

// errShutdown ends a session: Asterisk closes the connection seconds after its Shutdown.
var errShutdown = errors.New("shutdown of Asterisk")

// errNoSequenceNumber is the error of a feed with redundancy 2 of a switch that does not number its events.
var errNoSequenceNumber = errors.New(
	"redundancy 2: events without SequenceNumber, which tells two copies of an event from two equal events")

type session struct {
	platform  *platform
	conn      *ami.Conn
	switchRun string         // run of the switch, with the feed's name
	notes     []string       // see feed.Snapshot
	headers   []kafka.Header // of call records

	out               []feed.Event // what Read returns next
	hold              *eventHold
	wrapUps           map[agentKey]wrapUp // that are under way
	completedCalls    map[agentKey]completedCall
	snapshotWrapUps   chan map[agentKey]wrapUp // from the latest snapshot, for Read
	suspectEvents     int                      // number of following events that may be forged
	lastSuspectResync time.Time                // last resync for a broken event
	shutdown          bool                     // Asterisk has announced its end
}

// agentKey identifies an agent; its id is its interface, or that in app_agent_pool.
type agentKey struct{ account, id string }

func newSession(p *platform, conn *ami.Conn) *session {
	return &session{
		platform: p, conn: conn,
		headers: []kafka.Header{{Key: event.HeaderTimeZone, Value: []byte(p.cfg.TimeZone)}},
		hold:    newHold(), wrapUps: map[agentKey]wrapUp{}, snapshotWrapUps: make(chan map[agentKey]wrapUp, 1),
		completedCalls: map[agentKey]completedCall{},
	}
}

// Close implements feed.Session.
func (s *session) Close() error {
	s.conn.Close()
	return nil
}

// Read implements feed.Session.
func (s *session) Read(ctx context.Context) ([]feed.Event, error) {
	s.out = s.out[:0]
	for {
		// Before the events are taken: what arrived before the end is among them.
		ended := s.conn.Err()
		events := s.conn.Take()
		now := time.Now()

		for _, message := range events {
			if err := s.handleMessage(message, now); err != nil {
				return nil, err
			}
		}

		s.appendDueEvents(now)
		switch {
		case len(s.out) > 0:
			return s.out, nil
		case s.shutdown:
			return nil, errShutdown
		case ended != nil:
			// Nothing shows their account any more: they are sent without one, before the error.
			s.out = s.hold.releaseExpired(s.out, now.Add(holdTime))
			if len(s.out) > 0 {
				return s.out, nil
			}
			return nil, ended
		}

		if err := s.wait(ctx, now); err != nil {
			return nil, err
		}
	}
}

// wait returns when events have arrived, the connection has ended, or a tick is due.
func (s *session) wait(ctx context.Context, now time.Time) error {
	var due <-chan time.Time
	if s.hold.eventCount > 0 || len(s.wrapUps) > 0 {
		due = time.After(100 * time.Millisecond)
	}

	select {
	case <-s.conn.Arrived():
	case <-s.conn.Done():
	case <-due:
	case found := <-s.snapshotWrapUps:
		s.addWrapUps(found, now)
	case <-ctx.Done():
		return ctx.Err()
	}

	return nil
}

// appendDueEvents appends the events that are due without an event of Asterisk.
func (s *session) appendDueEvents(now time.Time) {
	s.out = s.hold.releaseExpired(s.out, now)
	for key, w := range s.wrapUps {
		if now.Before(w.until) {
			continue
		}

		delete(s.wrapUps, key)
		e := resyncRecord(key.account, w.facts, now)
		e.Identity = w.identity
		s.out = append(s.out, e)
	}
}

// requestResync has the feed request a snapshot.
func (s *session) requestResync() {
	s.out = append(s.out, feed.Event{Resync: true})
}

// handleMessage appends the records of one event.
func (s *session) handleMessage(message *ami.Message, now time.Time) error {
	name := message.Name()
	if s.isSuspect(message, now) {
		return nil
	}

	switch name {
	case "Shutdown":
		s.shutdown = true
		return nil
	case "FullyBooted", "Reload":
		s.requestResync()
		return nil
	}

	// Events that are not stored, too, show accounts: those of variables.
	account, names := s.platform.accountLookup.find(message)
	if account != "" {
		for _, id := range callIDs(message) {
			s.out = s.hold.release(s.out, id, account)
		}
	}

	if !s.isStored(message, account) {
		return s.checkNumber(message)
	}

	e := feed.Event{
		Topic: event.TopicRaw, Format: format.EventFormatName,
		Value:   appendJSON(make([]byte, 0, message.Size+message.Size/2+64), message.Fields, now),
		Account: account, Names: names, Subjects: subjects(message),
	}

	if name == "Cdr" {
		e.Topic, e.Format, e.Headers = event.TopicCDRRaw, format.CDRFormatName, s.headers
	}

	e.Identity = identity(message, s.switchRun)
	if err := s.checkNumber(message); err != nil {
		return err
	}

	s.platform.recentEvents.add(message, e.Subjects, now)
	s.emit(e, message, now)
	return nil
}

// identity returns the identity of an event in a run, the zero value if the event has no number.
func identity(message *ami.Message, run string) feed.Identity {
	number, err := strconv.ParseInt(message.Get("SequenceNumber"), 10, 32)
	if err != nil {
		return feed.Identity{}
	}
	return feed.Identity{Run: run, Number: uint64(uint32(number))}
}

// checkNumber returns an error for an event without a number if two nodes read the switch.
func (s *session) checkNumber(message *ami.Message) error {
	if s.platform.cfg.Redundancy < 2 || identity(message, s.switchRun).Valid() {
		return nil
	}
	return &feed.Refusal{Err: errNoSequenceNumber,
		Advice: "manager.conf, [general]: debug = on; or redundancy: 1, with which another node takes the feed over and a resync corrects the state"}
}

// emit appends an event, or holds it until the account of its call is known.
func (s *session) emit(e feed.Event, message *ami.Message, now time.Time) {
	id := knownValue(message, "Linkedid")
	if id == "" {
		id = knownValue(message, "DestLinkedid")
	}
	if e.Account == "" && id != "" && s.hold.add(id, e, now) {
		return
	}
	s.out = append(s.out, e)
	s.watchWrapUp(message, e.Account, now)
}

// isStored reports whether an event becomes a record. An event without a call, agent or device belongs to
// no account.
func (s *session) isStored(message *ami.Message, account string) bool {
	name := message.Name()
	switch {
	case len(s.platform.cfg.Events) > 0:
		return account != "" || isForwarded(name)
	case name == "VarSet":
		return message.Get("Variable") == "QUEUESTATUS"
	}
	return isForwarded(name)
}

// isSuspect reports whether an event is split by a line break in a value, or follows such an event and
// may be forged by the caller. A resync corrects the effect of dropped events.
func (s *session) isSuspect(message *ami.Message, now time.Time) bool {
	const maxSuspectEvents = 8 // events after a split one, unless its second part arrives before
	isFirstPart, isSecondPart := isSplit(message), message.Name() == ""
	switch {
	// Nothing of the split event comes after its second part.
	case isSecondPart, s.suspectEvents > 0 && repeatsKey(message):
		s.suspectEvents = 0
	case isFirstPart:
		s.suspectEvents = maxSuspectEvents
	case s.suspectEvents > 0:
		s.suspectEvents--
	default:
		return false
	}

	if (isFirstPart || isSecondPart) && now.Sub(s.lastSuspectResync) >= suspectResyncPause {
		s.lastSuspectResync = now
		s.platform.deps.Log.Warn("manager interface: event broken by a line break in a value")
		s.requestResync()
	}

	return true
}

// resyncRecord returns a correction of the state.
func resyncRecord(account string, facts event.Facts, now time.Time) feed.Event {
	value := []byte(`{"resync":"asterisk","timestamp":`)
	value = fmt.Appendf(value, "%d.%03d", now.Unix(), now.Nanosecond()/1e6)
	value = append(value, `,"facts":`...)
	text := facts.Append(nil)
	return feed.Event{
		Topic: event.TopicRaw, Format: format.ResyncFormatName, Value: append(append(value, text...), '}'),
		Account: account, Subjects: []string{facts.AgentID},
	}
}

const suspectResyncPause = 10 * time.Second // between resyncs for broken events
