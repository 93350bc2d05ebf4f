package asterisk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	b := &snapshotBuilder{
		session: s, now: time.Now(), wrapUps: map[agentKey]wrapUp{}, poolMembers: map[agentKey]bool{},
		accounts: newAccountCheck(),
	}
	b.Notes = slices.Clone(s.notes)
	b.RecentlyChanged = s.platform.recentEvents.recentlyChanged(b.now)

	// In this order: channels find their callers and members, pool agents theirs, in the answers about queues.
	for _, add := range []func(context.Context) error{b.addQueues, b.addPoolAgents, b.addChannels, b.addDevices,
		b.setParked} {
		if err := add(ctx); err != nil {
			return feed.Snapshot{}, err
		}
	}

	b.Notes = append(b.Notes, b.accounts.notes(s.platform)...)
	select { // replace an older one that Read has not received
	case <-s.snapshotWrapUps:
	default:
	}

	s.snapshotWrapUps <- b.wrapUps
	return b.Snapshot, nil
}

// snapshotBuilder collects a snapshot.
type snapshotBuilder struct {
	feed.Snapshot
	session         *session
	now             time.Time
	queueEntries    map[string]*ami.Message // callers in queues by Uniqueid
	wrapUps         map[agentKey]wrapUp     // that are under way, for Read
	membersComplete bool                    // the list of queue members is complete
	accounts        accountCheck
	inCall          []memberInCall    // from the queues, for the channels
	poolMembers     map[agentKey]bool // agents of app_agent_pool that are members, by their id in the pool
}

// list requests a list with an action. class is the class of rights that the action needs, missing what is not
// corrected without it. ok is false if Asterisk does not have the action or refuses it. It is true with
// an empty list if Asterisk reports that there is nothing to list.
func (b *snapshotBuilder) list(ctx context.Context,
	action, class, missing string) (items []*ami.Message, ok bool, err error) {
	items, err = b.session.conn.List(ctx, action)
	switch {
	case err == nil:
		return items, true, nil
	case denied(err):
		b.Notes = append(b.Notes,
			fmt.Sprintf("%s cannot be corrected after a break: manager.conf, [%s]: write = %s (for the action %s)",
				missing, b.session.platform.cfg.Username, class, action))
		return nil, false, nil
	case unknownAction(err):
		module := actionModules[action]
		if module != "" {
			b.Notes = append(b.Notes,
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

// accountOf returns the account of an item of a list, and records whether it has one.
func (b *snapshotBuilder) accountOf(message *ami.Message) string {
	account, names := b.session.platform.accountLookup.find(message)
	b.accounts.add(message, account, names)
	return account
}

// addQueues requests the members of queues and the waiting callers.
func (b *snapshotBuilder) addQueues(ctx context.Context) error {
	items, ok, err := b.list(ctx, "QueueStatus", "all", "agents")
	if err != nil || !ok {
		return err
	}

	b.membersComplete, b.queueEntries = true, map[string]*ami.Message{}
	agents, order := map[agentKey]*feed.Object{}, []*feed.Object(nil)
	for _, item := range items {
		switch item.Name() {
		case "QueueEntry":
			b.queueEntries[knownValue(item, "Uniqueid")] = item
		case "QueueMember":
			key := agentKey{b.accountOf(item), memberInterface(item)}
			// A member of several queues is one agent.
			m := agents[key]
			if m == nil {
				m = &feed.Object{Account: key.account, Kind: state.Agent, ID: key.id,
					Facts: event.Facts{AgentID: key.id, AgentName: knownValue(item, "Name")}, Queues: []string{}}
				agents[key], order = m, append(order, m)
			}

			b.addMember(m, key, parseMember(item, b.now), knownValue(item, "Queue"))
		}
	}

	for _, m := range order {
		slices.Sort(m.Queues)
		b.Objects = append(b.Objects, *m)
	}

	return nil
}

// addMember adds a membership to an agent.
func (b *snapshotBuilder) addMember(agent *feed.Object, key agentKey, m format.Member, queue string) {
	report := m.AgentReport()
	agent.Queues = append(agent.Queues, queue)
	agent.Members = append(agent.Members,
		feed.Member{Queue: queue, SinceMS: memberSince(&m, report) * 1000, Report: report})
	agent.LastCallMS = max(agent.LastCallMS, m.LastCall*1000)
	end := m.WrapUpEnd()
	if report.WrapUpUntilMS != 0 && key.account != "" && end.After(b.wrapUps[key].until) {
		b.wrapUps[key] = wrapUp{end, wrapUpFacts(key.id, agent.Facts.AgentName, queue, end),
			b.session.wrapUpIdentity(key, end)}
	}
	if report.OtherID != "" {
		b.poolMembers[agentKey{key.account, report.OtherID}] = true
	}
	if report.InCall && report.Device != event.DeviceIdle { // else the caller was sent on
		b.inCall = append(b.inCall, memberInCall{m.Interface, m.StateInterface, queue})
	}
}

// memberSince returns since when a member is in its state, Unix seconds; 0: unknown.
func memberSince(m *format.Member, report *event.AgentReport) int64 {
	switch {
	case report.Device != event.DeviceIdle && report.Device != event.DeviceUnknown:
		return 0
	case report.Paused:
		return max(m.LastPause, m.LastCall)
	case report.WrapUpUntilMS != 0 || m.LastCall == 0:
		return m.LastCall
	}
	return m.WrapUpEnd().Unix()
}

// memberInCall is a member to whom a call of its queue is connected.
type memberInCall struct{ id, stateInterface, queue string }

// addPoolAgents requests the agents of app_agent_pool, and completes the agents.
func (b *snapshotBuilder) addPoolAgents(ctx context.Context) error {
	items, ok, err := b.list(ctx, "Agents", "agent", "agents of app_agent_pool")
	if err != nil {
		return err
	}

	poolDenied := !ok && len(b.Notes) > 0 && strings.Contains(b.Notes[len(b.Notes)-1], "app_agent_pool")
	for _, item := range items {
		o := feed.Object{Account: b.accountOf(item), Kind: state.Agent, ID: knownValue(item, "Agent"),
			Facts: event.Facts{AgentID: knownValue(item, "Agent")}}
		switch item.Get("Status") {
		case "AGENT_LOGGEDOFF":
			continue
		case "AGENT_IDLE":
			o.Facts.State = event.Available
		case "AGENT_ONCALL":
			o.Facts.State = event.Talking
		}

		if !b.poolMembers[agentKey{o.Account, o.ID}] { // else known as the member
			b.Objects = append(b.Objects, o)
		}
	}

	if b.membersComplete && !poolDenied {
		b.CompleteKinds = append(b.CompleteKinds, state.Agent)
	}

	return nil
}

// addChannels requests all channels. Each is a call.
func (b *snapshotBuilder) addChannels(ctx context.Context) error {
	items, ok, err := b.list(ctx, "CoreShowChannels", "reporting", "calls")
	if err != nil || !ok {
		return err
	}

	b.CompleteKinds = append(b.CompleteKinds, state.Call)
	// by Uniqueid; by Linkedid, calls for which a queue rings an agent
	ids, ringing := map[string]bool{}, map[string]bool{}
	agents := map[string]string{} // by bridge: the channel of an agent of a queue

	for _, item := range items {
		b.accountOf(item) // stores the account, from any leg
		ids[knownValue(item, "Uniqueid")] = true
		switch {
		case item.Get("Application") != "AppQueue":
		case item.Get("ChannelState") != "6":
			ringing[knownValue(item, "Linkedid")] = true
		case item.Get("BridgeId") != "":
			agents[item.Get("BridgeId")] = item.Get("Channel")
		}
	}

	heldCalls := b.session.platform.recentEvents.dropEndedAndListHeld(ids) // true: parked
	for _, item := range items {
		id := knownValue(item, "Uniqueid")
		if id == "" {
			continue
		}

		parked, onHold := heldCalls[id]
		facts := b.legFacts(item, ringing[knownValue(item, "Linkedid")], onHold, agents[item.Get("BridgeId")])
		if facts.State == event.Held && (parked || strings.HasPrefix(item.Get("Application"), "Park")) {
			facts.Reason = event.ReasonParked
		}

		noQueue := facts.QueueID == "" && b.membersComplete && item.Get("Application") != "Queue"
		b.Objects = append(b.Objects,
			feed.Object{Account: b.accountOf(item), Kind: state.Call, ID: id, Facts: facts, Leg: true,
				NoQueue: noQueue})
	}

	return nil
}

// legFacts returns the facts of a channel. agent is the channel of an agent in its bridge, ""
// if there is none.
func (b *snapshotBuilder) legFacts(message *ami.Message, ringing, held bool, agent string) event.Facts {
	facts := event.Facts{CallID: knownValue(message, "Uniqueid"), InteractionID: knownValue(message, "Linkedid"),
		Caller: knownValue(message, "CallerIDNum"), State: event.Ringing}
	exten := knownValue(message, "Exten")
	if exten != "s" {
		facts.Callee = exten
	}

	application := message.Get("Application")
	entry := b.queueEntries[facts.CallID]
	switch {
	case entry != nil:
		facts.QueueID, facts.State = knownValue(entry, "Queue"), event.Waiting
		if ringing {
			facts.State = event.Ringing
		}

		waited, err := strconv.ParseInt(entry.Get("Wait"), 10, 64)
		if err == nil {
			facts.TimestampMS, facts.WaitMS = b.now.UnixMilli(), event.MillisOf(waited*1000)
		}

		place, _ := strconv.ParseInt(entry.Get("Position"), 10, 32)
		facts.Position = event.PlaceOf(place)
	case message.Get("ChannelState") != "6":
	case held, strings.HasPrefix(application, "Park"):
		facts.State = event.Held
	default:
		facts.State = event.Talking
	}

	if application == "Queue" && entry == nil && agent != "" {
		queue, _, _ := strings.Cut(message.Get("ApplicationData"), ",")
		facts.QueueID, facts.AgentID = queue, b.memberOf(agent, queue)
	}

	return facts
}

// memberOf returns the member of a queue that talks on a channel, "" if it is unknown.
func (b *snapshotBuilder) memberOf(channel, queue string) string {
	name := channel // technology/resource-number, of a Local channel with ;1 or ;2
	at := strings.LastIndexByte(channel, '-')
	if at >= 0 {
		name = channel[:at]
	}

	for _, m := range b.inCall {
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

// setParked requests the parked calls, if any call may be one. A call that a transfer has parked
// differs from one that talks only in the event and in the list, which needs write = call.
func (b *snapshotBuilder) setParked(ctx context.Context) error {
	talks := func(o feed.Object) bool {
		return o.Kind == state.Call && o.Facts.State == event.Talking && o.Facts.AgentID == ""
	}
	if !slices.ContainsFunc(b.Objects, talks) {
		return nil
	}

	items, err := b.session.conn.List(ctx, "ParkedCalls")
	if err != nil && !isRefusal(err) {
		return fmt.Errorf("asking for ParkedCalls: %w", err)
	}

	for _, item := range items {
		for i := range b.Objects {
			o := &b.Objects[i]
			if talks(*o) && o.ID == knownValue(item, "ParkeeUniqueid") {
				o.Facts.State, o.Facts.Reason = event.Held, event.ReasonParked
			}
		}
	}

	return nil
}

// addDevices requests the registered phones of PJSIP, and the devices of other channel drivers, for
// which Asterisk reports only that they exist.
func (b *snapshotBuilder) addDevices(ctx context.Context) error {
	items, ok, err := b.list(ctx, "PJSIPShowContacts", "system", "registrations")
	if err != nil || !ok {
		return err
	}

	others, ok, err := b.list(ctx, "DeviceStateList", "reporting", "registrations")
	if err == nil && !ok {
		b.Notes = append(b.Notes,
			"registrations cannot be corrected after a break without the action DeviceStateList: modules.conf: load = res_manager_devicestate.so")
	}
	if err != nil || !ok {
		return err
	}

	b.CompleteKinds = append(b.CompleteKinds, state.Device)
	endpoints := map[agentKey]int{} // in Objects
	for _, item := range items {
		account, endpoint := b.accountOf(item), cmp.Or(knownValue(item, "Endpoint"), knownValue(item, "Aor"))
		if endpoint == "" || item.Get("Status") == "Unreachable" {
			continue
		}

		id := "PJSIP/" + endpoint // as in the facts of ContactStatus and PeerStatus
		at, known := endpoints[agentKey{account, id}]
		if !known {
			at = len(b.Objects)
			endpoints[agentKey{account, id}] = at
			b.Objects = append(b.Objects, feed.Object{Account: account, Kind: state.Device, ID: id,
				Facts: event.Facts{AgentID: id, State: event.Registered}})
		}

		uri := knownValue(item, "Uri")
		if uri != "" {
			b.Objects[at].Contacts = append(b.Objects[at].Contacts, uri)
		}
	}

	for _, item := range others {
		device := knownValue(item, "Device")
		technology, _, ok := strings.Cut(device, "/")
		if !ok || strings.Contains(technology, ":") || technology == "PJSIP" || technology == "Local" {
			continue
		}
		b.Objects = append(b.Objects, feed.Object{Kind: state.Device, ID: device, Facts: event.Facts{AgentID: device}})
	}

	return nil
}
