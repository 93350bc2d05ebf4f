package asterisk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	format "trunkline/format/asterisk"
	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

// Snapshot implements feed.Session.
func (s *session) Snapshot(ctx context.Context) (feed.Snapshot, error) {
	q := &snapshotBuilder{
		session: s, now: time.Now(), wrapUps: map[agentKey]wrapUp{}, poolMembers: map[agentKey]bool{},
		accounts: newAccountCheck(),
	}
	q.Notes = slices.Clone(s.notes)
	q.Unsettled = s.platform.recentEvents.unsettled(q.now)

	// In this order: channels find their callers and members, pool agents theirs, in what the queues have told.
	for _, add := range []func(context.Context) error{q.addQueues, q.addPoolAgents, q.addChannels, q.addDevices,
		q.setParked} {
		if err := add(ctx); err != nil {
			return feed.Snapshot{}, err
		}
	}

	q.Notes = append(q.Notes, q.accounts.notes(s.platform)...)
	select { // replace an older one that Read has not received
	case <-s.foundWrapUps:
	default:
	}

	s.foundWrapUps <- q.wrapUps
	return q.Snapshot, nil
}

// snapshotBuilder collects a snapshot.
type snapshotBuilder struct {
	feed.Snapshot
	session         *session
	now             time.Time
	queueEntries    map[string]*ami.Message // callers in queues by Uniqueid
	wrapUps         map[agentKey]wrapUp
	membersComplete bool // the list of queue members is complete
	accounts        accountCheck
	inCall          []memberInCall
	poolMembers     map[agentKey]bool // agents of app_agent_pool that are members, by their id in the pool
}

// list requests a list. ok is false if Asterisk does not have the action or refuses it. It is true with
// an empty list if Asterisk reports that there is nothing to list.
func (q *snapshotBuilder) list(ctx context.Context,
	action, class, missing string) (items []*ami.Message, ok bool, err error) {
	items, err = q.session.conn.List(ctx, action)
	switch {
	case err == nil:
		return items, true, nil
	case denied(err):
		q.Notes = append(q.Notes,
			fmt.Sprintf("%s cannot be corrected after a break: manager.conf, [%s]: write = %s (for the action %s)",
				missing, q.session.platform.cfg.Username, class, action))
		return nil, false, nil
	case unknownAction(err):
		module := actionModules[action]
		if module != "" {
			q.Notes = append(q.Notes,
				fmt.Sprintf("Asterisk does not know the action %s: %s cannot be corrected after a break. Where the switch has them: modules.conf: load = %s",
					action, missing, module))
		}

		return nil, false, nil
	case isRefusal(err):
		return nil, true, nil
	case errors.Is(err, context.Cause(ctx)) && ctx.Err() != nil:
		return nil, false, err
	}

	return nil, false, fmt.Errorf("asking for %s: %w", action, err)
}

// actionModules has the modules of actions that most switches have.
var actionModules = map[string]string{"QueueStatus": "app_queue.so", "PJSIPShowContacts": "res_pjsip.so"}

func (q *snapshotBuilder) accountOf(p *ami.Message) string {
	account, names := q.session.platform.accountLookup.find(p)
	q.accounts.add(p, account, names)
	return account
}

// addQueues requests the members of queues and the waiting callers.
func (q *snapshotBuilder) addQueues(ctx context.Context) error {
	items, ok, err := q.list(ctx, "QueueStatus", "all", "agents")
	if err != nil || !ok {
		return err
	}

	q.membersComplete, q.queueEntries = true, map[string]*ami.Message{}
	agents, order := map[agentKey]*feed.Object{}, []*feed.Object(nil)
	for _, p := range items {
		switch p.Name() {
		case "QueueEntry":
			q.queueEntries[value(p, "Uniqueid")] = p
		case "QueueMember":
			key := agentKey{q.accountOf(p), memberInterface(p)}
			// A member of several queues is one agent.
			m := agents[key]
			if m == nil {
				m = &feed.Object{Account: key.account, Kind: state.Agent, ID: key.id,
					Facts: event.Facts{AgentID: key.id, AgentName: value(p, "Name")}, Queues: []string{}}
				agents[key], order = m, append(order, m)
			}

			q.addMember(m, key, parseMember(p, q.now), value(p, "Queue"))
		}
	}

	for _, m := range order {
		slices.Sort(m.Queues)
		q.Objects = append(q.Objects, *m)
	}

	return nil
}

// addMember adds a membership to an agent.
func (q *snapshotBuilder) addMember(agent *feed.Object, key agentKey, m format.Member, queue string) {
	said := m.Said()
	agent.Queues = append(agent.Queues, queue)
	agent.Members = append(agent.Members, feed.Member{Queue: queue, SinceMS: memberSince(&m, said) * 1000, Said: said})
	agent.LastCallMS = max(agent.LastCallMS, m.LastCall*1000)
	end := m.WrapUpEnd()
	if said.WrapUpUntilMS != 0 && key.account != "" && end.After(q.wrapUps[key].until) {
		q.wrapUps[key] = wrapUp{end, wrapUpFacts(key.id, agent.Facts.AgentName, queue, end),
			q.session.wrapUpIdentity(key, end)}
	}
	if said.OtherID != "" {
		q.poolMembers[agentKey{key.account, said.OtherID}] = true
	}
	if said.InCall && said.Device != event.DeviceIdle { // else the caller was sent on
		q.inCall = append(q.inCall, memberInCall{m.Interface, m.StateInterface, queue})
	}
}

// memberSince returns since when a member is in its state, Unix seconds; 0: unknown.
func memberSince(m *format.Member, said *event.AgentSaid) int64 {
	switch {
	case said.Device != event.DeviceIdle && said.Device != event.DeviceUnknown:
		return 0
	case said.Paused:
		return max(m.LastPause, m.LastCall)
	case said.WrapUpUntilMS != 0 || m.LastCall == 0:
		return m.LastCall
	}
	return m.WrapUpEnd().Unix()
}

// memberInCall is a member to whom a call of its queue is connected.
type memberInCall struct{ id, stateInterface, queue string }

// wrapUpIdentity returns the identity of the end of a wrap-up without an event. It is the same on each
// connection to the switch.
func (s *session) wrapUpIdentity(key agentKey, end time.Time) feed.Identity {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%d", key.account, key.id, end.Unix())
	return feed.Identity{Run: s.switchRun + "/wrap-ups", Number: h.Sum64()}
}

// addPoolAgents requests the agents of app_agent_pool, and completes the agents.
func (q *snapshotBuilder) addPoolAgents(ctx context.Context) error {
	items, ok, err := q.list(ctx, "Agents", "agent", "agents of app_agent_pool")
	if err != nil {
		return err
	}

	denied := !ok && len(q.Notes) > 0 && strings.Contains(q.Notes[len(q.Notes)-1], "app_agent_pool")
	for _, p := range items {
		o := feed.Object{Account: q.accountOf(p), Kind: state.Agent, ID: value(p, "Agent"),
			Facts: event.Facts{AgentID: value(p, "Agent")}}
		switch p.Get("Status") {
		case "AGENT_LOGGEDOFF":
			continue
		case "AGENT_IDLE":
			o.Facts.State = event.Available
		case "AGENT_ONCALL":
			o.Facts.State = event.Talking
		}

		if !q.poolMembers[agentKey{o.Account, o.ID}] { // else known as the member
			q.Objects = append(q.Objects, o)
		}
	}

	if q.membersComplete && !denied {
		q.Kinds = append(q.Kinds, state.Agent)
	}

	return nil
}

// addChannels requests all channels. Each is a call.
func (q *snapshotBuilder) addChannels(ctx context.Context) error {
	items, ok, err := q.list(ctx, "CoreShowChannels", "reporting", "calls")
	if err != nil || !ok {
		return err
	}

	q.Kinds = append(q.Kinds, state.Call)
	// by Uniqueid; by Linkedid, calls for which a queue rings an agent
	ids, ringing := map[string]bool{}, map[string]bool{}
	agents := map[string]string{} // by bridge: the channel of an agent of a queue

	for _, p := range items {
		q.accountOf(p) // stores the account, from any leg
		ids[value(p, "Uniqueid")] = true
		switch {
		case p.Get("Application") != "AppQueue":
		case p.Get("ChannelState") != "6":
			ringing[value(p, "Linkedid")] = true
		case p.Get("BridgeId") != "":
			agents[p.Get("BridgeId")] = p.Get("Channel")
		}
	}

	held := q.session.platform.recentEvents.onHold(ids)
	for _, p := range items {
		id := value(p, "Uniqueid")
		if id == "" {
			continue
		}

		parked, onHold := held[id]
		facts := q.legFacts(p, ringing[value(p, "Linkedid")], onHold, agents[p.Get("BridgeId")])
		if facts.State == event.Held && (parked || strings.HasPrefix(p.Get("Application"), "Park")) {
			facts.Reason = event.ReasonParked
		}

		noQueue := facts.QueueID == "" && q.membersComplete && p.Get("Application") != "Queue"
		q.Objects = append(q.Objects,
			feed.Object{Account: q.accountOf(p), Kind: state.Call, ID: id, Facts: facts, Leg: true, NoQueue: noQueue})
	}

	return nil
}

// legFacts returns the facts of a channel. agent is the channel of an agent in its bridge, ""
// if there is none.
func (q *snapshotBuilder) legFacts(p *ami.Message, ringing, held bool, agent string) event.Facts {
	facts := event.Facts{CallID: value(p, "Uniqueid"), InteractionID: value(p, "Linkedid"),
		Caller: value(p, "CallerIDNum"), State: event.Ringing}
	exten := value(p, "Exten")
	if exten != "s" {
		facts.Callee = exten
	}

	application := p.Get("Application")
	entry := q.queueEntries[facts.CallID]
	switch {
	case entry != nil:
		facts.QueueID, facts.State = value(entry, "Queue"), event.Waiting
		if ringing {
			facts.State = event.Ringing
		}

		waited, err := strconv.ParseInt(entry.Get("Wait"), 10, 64)
		if err == nil {
			facts.TimestampMS, facts.WaitMS = q.now.UnixMilli(), event.MillisOf(waited*1000)
		}

		place, _ := strconv.ParseInt(entry.Get("Position"), 10, 32)
		facts.Position = event.PlaceOf(place)
	case p.Get("ChannelState") != "6":
	case held, strings.HasPrefix(application, "Park"):
		facts.State = event.Held
	default:
		facts.State = event.Talking
	}

	if application == "Queue" && entry == nil && agent != "" {
		queue, _, _ := strings.Cut(p.Get("ApplicationData"), ",")
		facts.QueueID, facts.AgentID = queue, q.memberOf(agent, queue)
	}

	return facts
}

// memberOf returns the member of a queue that talks on a channel, "" if it is unknown.
func (q *snapshotBuilder) memberOf(channel, queue string) string {
	name := channel // technology/resource-number, of a Local channel with ;1 or ;2
	at := strings.LastIndexByte(channel, '-')
	if at >= 0 {
		name = channel[:at]
	}

	for _, m := range q.inCall {
		if m.queue == queue && (name == channelOf(m.id) || name == m.stateInterface) {
			return m.id
		}
	}

	return ""
}

// channelOf returns what the names of a member's channels begin with: its interface, without the options
// that a Local channel has behind its context.
func channelOf(member string) string {
	local, ok := strings.CutPrefix(member, "Local/")
	if !ok {
		return member
	}
	local, _, _ = strings.Cut(local, "/")
	return "Local/" + local
}

// setParked requests the parked calls, if any call may be one. Only the event tells a call that a transfer
// has parked apart from one that talks, and the list, which needs write = call.
func (q *snapshotBuilder) setParked(ctx context.Context) error {
	talks := func(o feed.Object) bool {
		return o.Kind == state.Call && o.Facts.State == event.Talking && o.Facts.AgentID == ""
	}
	if !slices.ContainsFunc(q.Objects, talks) {
		return nil
	}

	items, err := q.session.conn.List(ctx, "ParkedCalls")
	if err != nil && !isRefusal(err) {
		return fmt.Errorf("asking for ParkedCalls: %w", err)
	}

	for _, p := range items {
		for i := range q.Objects {
			o := &q.Objects[i]
			if talks(*o) && o.ID == value(p, "ParkeeUniqueid") {
				o.Facts.State, o.Facts.Reason = event.Held, event.ReasonParked
			}
		}
	}

	return nil
}

// addDevices requests the registered phones of PJSIP, and the devices of other channel drivers, for
// which Asterisk reports only that they exist.
func (q *snapshotBuilder) addDevices(ctx context.Context) error {
	items, ok, err := q.list(ctx, "PJSIPShowContacts", "system", "registrations")
	if err != nil || !ok {
		return err
	}

	others, ok, err := q.list(ctx, "DeviceStateList", "reporting", "registrations")
	if err == nil && !ok {
		q.Notes = append(q.Notes,
			"registrations cannot be corrected after a break without the action DeviceStateList: modules.conf: load = res_manager_devicestate.so")
	}
	if err != nil || !ok {
		return err
	}

	q.Kinds = append(q.Kinds, state.Device)
	endpoints := map[agentKey]int{} // in Objects
	for _, p := range items {
		account, endpoint := q.accountOf(p), cmp.Or(value(p, "Endpoint"), value(p, "Aor"))
		if endpoint == "" || p.Get("Status") == "Unreachable" {
			continue
		}

		id := "PJSIP/" + endpoint // as in the facts of ContactStatus and PeerStatus
		at, known := endpoints[agentKey{account, id}]
		if !known {
			at = len(q.Objects)
			endpoints[agentKey{account, id}] = at
			q.Objects = append(q.Objects, feed.Object{Account: account, Kind: state.Device, ID: id,
				Facts: event.Facts{AgentID: id, State: event.Registered}})
		}

		uri := value(p, "Uri")
		if uri != "" {
			q.Objects[at].Contacts = append(q.Objects[at].Contacts, uri)
		}
	}

	for _, p := range others {
		device := value(p, "Device")
		technology, _, ok := strings.Cut(device, "/")
		if !ok || strings.Contains(technology, ":") || technology == "PJSIP" || technology == "Local" {
			continue
		}
		q.Objects = append(q.Objects, feed.Object{Kind: state.Device, ID: device, Facts: event.Facts{AgentID: device}})
	}

	return nil
}
