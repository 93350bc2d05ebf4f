package asterisk

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	switchRun string   // run of the switch, with the feed's name
	notes     []string // see feed.Snapshot
	headers   []kafka.Header

	out               []feed.Event
	hold              *eventHold
	wrapUps           map[agentKey]wrapUp
	completedCalls    map[agentKey]completedCall
	foundWrapUps      chan map[agentKey]wrapUp // from the latest snapshot, for Read
	suspectEvents     int                      // number of following events that may be forged
	lastSuspectResync time.Time                // last resync for a broken event
	shutdown          bool
}

type agentKey struct{ account, id string }

// wrapUp is an agent's pause after a call. Asterisk sends no event at its end.
type wrapUp struct {
	until    time.Time
	facts    event.Facts
	identity feed.Identity // of its end; the same on every node
}

// completedCall is the end of an agent's call of a queue, until the status of the member follows. Asterisk
// notes the end in the member behind AgentComplete, and its status may be sent before that.
type completedCall struct {
	queue       string
	completedAt time.Time
}

func newSession(p *platform, conn *ami.Conn) *session {
	return &session{
		platform: p, conn: conn,
		headers: []kafka.Header{{Key: event.HeaderTimeZone, Value: []byte(p.cfg.TimeZone)}},
		hold:    newHold(), wrapUps: map[agentKey]wrapUp{}, foundWrapUps: make(chan map[agentKey]wrapUp, 1),
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

		for _, p := range events {
			if err := s.handleMessage(p, now); err != nil {
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
			// Nothing tells their account any more: they are sent without one, before the error.
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
	case found := <-s.foundWrapUps:
		s.addWrapUps(found, now)
	case <-ctx.Done():
		return ctx.Err()
	}

	return nil
}

// addWrapUps stores the wrap-ups that a snapshot has found, except those of agents with an event since.
func (s *session) addWrapUps(found map[agentKey]wrapUp, now time.Time) {
	changed := s.platform.recentEvents.unsettled(now)
	for key, w := range found {
		_, known := s.wrapUps[key]
		if !known && !slices.Contains(changed, key.id) {
			s.wrapUps[key] = w
		}
	}
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

func (s *session) requestResync() {
	s.out = append(s.out, feed.Event{Resync: true})
}

// handleMessage appends the records of one event.
func (s *session) handleMessage(p *ami.Message, now time.Time) error {
	name := p.Name()
	if s.isSuspect(p, now) {
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

	// Events that are not stored, too, tell accounts: those of variables.
	account, names := s.platform.accountLookup.find(p)
	if account != "" {
		for _, id := range callIDs(p) {
			s.out = s.hold.release(s.out, id, account)
		}
	}

	if !s.isStored(p, account) {
		return s.checkNumber(p)
	}

	e := feed.Event{
		Topic: event.TopicRaw, Format: format.EventFormatName,
		Value:   appendJSON(make([]byte, 0, p.Size+p.Size/2+64), p.Fields, now),
		Account: account, Names: names, Subjects: subjects(p),
	}

	if name == "Cdr" {
		e.Topic, e.Format, e.Headers = event.TopicCDRRaw, format.CDRFormatName, s.headers
	}

	e.Identity = identity(p, s.switchRun)
	if err := s.checkNumber(p); err != nil {
		return err
	}

	s.platform.recentEvents.add(p, e.Subjects, now)
	s.emit(e, p, now)
	return nil
}

// identity returns the identity of an event in a run, the zero value if the event has no number.
func identity(p *ami.Message, run string) feed.Identity {
	number, err := strconv.ParseInt(p.Get("SequenceNumber"), 10, 32)
	if err != nil {
		return feed.Identity{}
	}
	return feed.Identity{Run: run, Number: uint64(uint32(number))}
}

// checkNumber returns an error for an event without a number if two nodes read the switch.
func (s *session) checkNumber(p *ami.Message) error {
	if s.platform.cfg.Redundancy < 2 || identity(p, s.switchRun).Valid() {
		return nil
	}
	return &feed.Refusal{Err: errNoSequenceNumber,
		Advice: "manager.conf, [general]: debug = on; or redundancy: 1, with which another node takes the feed over and a resync corrects the state"}
}

// emit appends an event, or holds it until the account of its call is known.
func (s *session) emit(e feed.Event, p *ami.Message, now time.Time) {
	id := value(p, "Linkedid")
	if id == "" {
		id = value(p, "DestLinkedid")
	}
	if e.Account == "" && id != "" && s.hold.add(id, e, now) {
		return
	}
	s.out = append(s.out, e)
	s.watchWrapUp(p, e.Account, now)
}

// isStored reports whether an event becomes a record. An event without a call, agent or device belongs to
// no account.
func (s *session) isStored(p *ami.Message, account string) bool {
	name := p.Name()
	switch {
	case len(s.platform.cfg.Events) > 0:
		return account != "" || isForwarded(name)
	case name == "VarSet":
		return p.Get("Variable") == "QUEUESTATUS"
	}
	return isForwarded(name)
}

// isSuspect reports whether an event is split by a line break in a value, or follows such an event and
// may be forged by the caller. A resync corrects the effect of dropped events.
func (s *session) isSuspect(p *ami.Message, now time.Time) bool {
	const maxSuspectEvents = 8 // events after a split one, unless its second part arrives before
	isFirstPart, isSecondPart := isSplit(p), p.Name() == ""
	switch {
	// Nothing of the split event comes after its second part.
	case isSecondPart, s.suspectEvents > 0 && repeatsKey(p):
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

// watchWrapUp stores the end of an agent's wrap-up, and deletes it if the agent has another event
// before.
func (s *session) watchWrapUp(p *ami.Message, account string, now time.Time) {
	id := value(p, "Interface")
	if id == "" || account == "" {
		return
	}

	key := agentKey{account, id}
	switch p.Name() {
	case "AgentComplete":
		s.completedCalls[key] = completedCall{value(p, "Queue"), now}
	case "QueueMemberStatus", "QueueMemberPause":
		m := parseMember(p, now)
		s.beginWrapUp(p, key, &m, now)
		end := m.WrapUpEnd()
		// Of several queues the longest wrap-up counts.
		if m.Said().WrapUpUntilMS != 0 && !s.wrapUps[key].until.After(end) {
			s.wrapUps[key] = wrapUp{end, wrapUpFacts(id, value(p, "MemberName"), value(p, "Queue"), end),
				identity(p, s.switchRun+"/wrap-up")}
		}
	case "AgentCalled", "QueueMemberRemoved", "AgentConnect":
		delete(s.wrapUps, key)
		delete(s.completedCalls, key)
	}
}

// beginWrapUp appends the wrap-up of a member whose status is older than the end of its call, and
// completes the status.
func (s *session) beginWrapUp(p *ami.Message, key agentKey, m *format.Member, now time.Time) {
	call, ok := s.completedCalls[key]
	if !ok || call.queue != value(p, "Queue") {
		return
	}

	delete(s.completedCalls, key)
	ended := call.completedAt.Unix()
	if m.LastCall >= ended-1 || m.WrapUpTime == 0 { // the times of two clocks, in whole seconds
		return
	}

	m.LastCall = ended
	if m.Said().WrapUpUntilMS == 0 {
		return
	}

	e := resyncRecord(key.account, wrapUpFacts(key.id, value(p, "MemberName"), call.queue, m.WrapUpEnd()), now)
	e.Identity = identity(p, s.switchRun+"/wrap-up-begin")
	s.out = append(s.out, e)
}

// wrapUpFacts returns the facts of an agent's wrap-up until a time: at its end nothing new but that
// its time has come.
func wrapUpFacts(id, name, queue string, end time.Time) event.Facts {
	return event.Facts{Name: event.NameAgentState, AgentID: id, AgentName: name, QueueID: queue,
		Agent: &event.AgentSaid{WrapUpUntilMS: end.UnixMilli()}}
}

// parseMember parses the queue member in an event, at the time of reading.
func parseMember(p *ami.Message, now time.Time) format.Member {
	number := func(key string) int64 {
		n, err := strconv.ParseInt(p.Get(key), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}

	return format.Member{
		Interface: memberInterface(p), StateInterface: value(p, "StateInterface"), Status: p.Get("Status"),
		InCall: p.Get("InCall") == "1",
		Paused: p.Get("Paused") == "1", PausedReason: value(p, "PausedReason"), LastPause: number("LastPause"),
		LastCall:   number("LastCall"),
		WrapUpTime: number("Wrapuptime"), AtMS: now.UnixMilli(),
	}
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
