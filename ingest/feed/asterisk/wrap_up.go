package asterisk

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"trunkline/event"
	format "trunkline/format/asterisk"
	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

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

// addWrapUps stores the wrap-ups that a snapshot has found, except those of agents with an event since.
func (s *session) addWrapUps(found map[agentKey]wrapUp, now time.Time) {
	changed := s.platform.recentEvents.recentlyChanged(now)
	for key, w := range found {
		_, known := s.wrapUps[key]
		if !known && !slices.Contains(changed, key.id) {
			s.wrapUps[key] = w
		}
	}
}

// watchWrapUp stores the end of an agent's wrap-up, and deletes it if the agent has another event
// before.
func (s *session) watchWrapUp(message *ami.Message, account string, now time.Time) {
	id := knownValue(message, "Interface")
	if id == "" || account == "" {
		return
	}

	key := agentKey{account, id}
	switch message.Name() {
	case "AgentComplete":
		s.completedCalls[key] = completedCall{knownValue(message, "Queue"), now}
	case "QueueMemberStatus", "QueueMemberPause":
		m := parseMember(message, now)
		s.beginWrapUp(message, key, &m, now)
		end := m.WrapUpEnd()
		// Of several queues the longest wrap-up counts.
		if m.AgentReport().WrapUpUntilMS != 0 && !s.wrapUps[key].until.After(end) {
			facts := wrapUpFacts(id, knownValue(message, "MemberName"), knownValue(message, "Queue"), end)
			s.wrapUps[key] = wrapUp{end, facts, identity(message, s.switchRun+"/wrap-up")}
		}
	case "AgentCalled", "QueueMemberRemoved", "AgentConnect":
		delete(s.wrapUps, key)
		delete(s.completedCalls, key)
	}
}

// beginWrapUp appends the wrap-up of a member whose status is older than the end of its call, and
// completes the status.
func (s *session) beginWrapUp(message *ami.Message, key agentKey, m *format.Member, now time.Time) {
	call, ok := s.completedCalls[key]
	if !ok || call.queue != knownValue(message, "Queue") {
		return
	}

	delete(s.completedCalls, key)
	ended := call.completedAt.Unix()
	if m.LastCall >= ended-1 || m.WrapUpTime == 0 { // the times of two clocks, in whole seconds
		return
	}

	m.LastCall = ended
	if m.AgentReport().WrapUpUntilMS == 0 {
		return
	}

	facts := wrapUpFacts(key.id, knownValue(message, "MemberName"), call.queue, m.WrapUpEnd())
	e := resyncRecord(key.account, facts, now)
	e.Identity = identity(message, s.switchRun+"/wrap-up-begin")
	s.out = append(s.out, e)
}

// wrapUpFacts returns the facts of an agent's wrap-up until a time: at its end nothing new but that
// its time has come.
func wrapUpFacts(id, name, queue string, end time.Time) event.Facts {
	return event.Facts{Name: event.NameAgentState, AgentID: id, AgentName: name, QueueID: queue,
		Agent: &event.AgentReport{WrapUpUntilMS: end.UnixMilli()}}
}

// parseMember parses the queue member in an event, at the time of reading.
func parseMember(message *ami.Message, now time.Time) format.Member {
	number := func(key string) int64 {
		n, err := strconv.ParseInt(message.Get(key), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}

	return format.Member{
		Interface: memberInterface(message), StateInterface: knownValue(message, "StateInterface"),
		Status: message.Get("Status"), InCall: message.Get("InCall") == "1",
		Paused: message.Get("Paused") == "1", PausedReason: knownValue(message, "PausedReason"),
		LastPause: number("LastPause"), LastCall: number("LastCall"),
		WrapUpTime: number("Wrapuptime"), AtMS: now.UnixMilli(),
	}
}

// wrapUpIdentity returns the identity of the end of a wrap-up without an event. It is the same on each
// connection to the switch.
func (s *session) wrapUpIdentity(key agentKey, end time.Time) feed.Identity {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%d", key.account, key.id, end.Unix())
	return feed.Identity{Run: s.switchRun + "/wrap-ups", Number: h.Sum64()}
}
