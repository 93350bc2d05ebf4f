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
	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

// Snapshot implements feed.Session.
func (s *session) Snapshot(ctx context.Context) (feed.Snapshot, error) {
	q := &snapshotBuilder{session: s, now: time.Now(), wrapUps: map[agentKey]wrapUp{}, accounts: newAccountCheck()}
	q.Notes = slices.Clone(s.notes)
	q.Unsettled = s.platform.recentEvents.unsettled(q.now)
	for _, add := range []func(context.Context) error{q.addQueues, q.addPoolAgents, q.addChannels, q.addDevices} {
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
}

// list requests a list. ok is false if Asterisk does not have the action or refuses it. It is true with
// an empty list if Asterisk reports that there is nothing to list.
func (q *snapshotBuilder) list(ctx context.Context, action, class, missing string) (items []*ami.Message, ok bool, err error) {
	items, err = q.session.conn.List(ctx, action)
	switch {
	case err == nil:
		return items, true, nil
	case denied(err):
		q.Notes = append(q.Notes, fmt.Sprintf("%s cannot be corrected after a break: manager.conf, [%s]: write = %s (for the action %s)",
			missing, q.session.platform.cfg.Username, class, action))
		return nil, false, nil
	case unknownAction(err):
		if module := actionModules[action]; module != "" {
			q.Notes = append(q.Notes, fmt.Sprintf("Asterisk does not know the action %s: %s cannot be corrected after a break. Where the switch has them: modules.conf: load = %s",
				action, missing, module))
		}
		return nil, false, nil
	case refused(err):
		return nil, true, nil
	case errors.Is(err, context.Cause(ctx)) && ctx.Err() != nil:
		return nil, false, err
	}
	return nil, false, fmt.Errorf("asking for %s: %w", action, err)
}

// actionModules has the modules of actions that most switches have.
var actionModules = map[string]string{"QueueStatus": "app_queue.so", "PJSIPShowContacts": "res_pjsip.so"}

func (q *snapshotBuilder) accountOf(p *ami.Message) string {
	account, names := q.session.platform.tenants.find(p)
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
	type memberships struct {
		feed.Object
		states []event.State
	}
	agents, order := map[agentKey]*memberships{}, []*memberships(nil)
	for _, p := range items {
		switch p.Name() {
		case "QueueEntry":
			q.queueEntries[value(p, "Uniqueid")] = p
		case "QueueMember":
			key := agentKey{q.accountOf(p), memberInterface(p)}
			m := agents[key]
			if m == nil {
				m = &memberships{Object: feed.Object{Account: key.account, Kind: state.Agent, ID: key.id,
					Facts: event.Facts{AgentID: key.id, AgentName: value(p, "Name")}, Queues: []string{}}}
				agents[key], order = m, append(order, m)
			}
			m.Queues = append(m.Queues, value(p, "Queue"))
			queueMember := parseMember(p, q.now)
			m.states = append(m.states, queueMember.State())
			if end := queueMember.WrapUpEnd(); queueMember.State() == event.WrapUp && end.After(q.wrapUps[key].until) {
				q.wrapUps[key] = wrapUp{end, wrapUpEndFacts(key.id, m.Facts.AgentName), q.session.wrapUpIdentity(key, end)}
			}
		}
	}
	for _, m := range order {
		slices.Sort(m.Queues)
		m.Facts.State = combinedState(m.states)
		if key := (agentKey{m.Account, m.ID}); m.Facts.State != event.WrapUp || m.Account == "" {
			delete(q.wrapUps, key)
		}
		q.Objects = append(q.Objects, m.Object)
	}
	return nil
}

// wrapUpIdentity returns the identity of the end of a wrap-up without an event. It is the same on each
// connection to the switch.
func (s *session) wrapUpIdentity(key agentKey, end time.Time) feed.Identity {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%d", key.account, key.id, end.Unix())
	return feed.Identity{Run: s.run + "/wrap-ups", Number: h.Sum64()}
}

// combinedState returns the state of an agent from its states in its queues. It is "" if the agent is paused
// in some of them only.
func combinedState(states []event.State) event.State {
	for _, s := range []event.State{event.Talking, event.Ringing, event.WrapUp} {
		if slices.Contains(states, s) {
			return s
		}
	}
	for _, s := range states[1:] {
		if s != states[0] {
			return ""
		}
	}
	return states[0]
}

// addPoolAgents requests the agents of app_agent_pool, and completes the agents.
func (q *snapshotBuilder) addPoolAgents(ctx context.Context) error {
	items, ok, err := q.list(ctx, "Agents", "agent", "agents of app_agent_pool")
	if err != nil {
		return err
	}
	denied := !ok && len(q.Notes) > 0 && strings.Contains(q.Notes[len(q.Notes)-1], "app_agent_pool")
	for _, p := range items {
		o := feed.Object{Account: q.accountOf(p), Kind: state.Agent, ID: value(p, "Agent"), Facts: event.Facts{AgentID: value(p, "Agent")}}
		switch p.Get("Status") {
		case "AGENT_LOGGEDOFF":
			continue
		case "AGENT_IDLE":
			o.Facts.State = event.Available
		case "AGENT_ONCALL":
			o.Facts.State = event.Talking
		}
		q.Objects = append(q.Objects, o)
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
	ids, ringing := map[string]bool{}, map[string]bool{} // by Uniqueid; by Linkedid, calls for which a queue rings an agent
	for _, p := range items {
		q.accountOf(p) // stores the account, from any leg
		ids[value(p, "Uniqueid")] = true
		if p.Get("Application") == "AppQueue" && p.Get("ChannelState") != "6" {
			ringing[value(p, "Linkedid")] = true
		}
	}
	held := q.session.platform.recentEvents.onHold(ids)
	for _, p := range items {
		id, interaction := value(p, "Uniqueid"), value(p, "Linkedid")
		if id == "" {
			continue
		}
		facts := event.Facts{CallID: id, InteractionID: interaction, Caller: value(p, "CallerIDNum"), State: event.Ringing}
		if exten := value(p, "Exten"); exten != "s" {
			facts.Callee = exten
		}
		entry := q.queueEntries[id]
		switch {
		case entry != nil:
			facts.QueueID, facts.State = value(entry, "Queue"), event.Waiting
			if ringing[interaction] {
				facts.State = event.Ringing
			}
			if waited, err := strconv.ParseInt(entry.Get("Wait"), 10, 64); err == nil && facts.State == event.Waiting {
				facts.TimestampMS = q.now.UnixMilli() - waited*1000
			}
		case p.Get("ChannelState") == "6" && held[id]:
			facts.State = event.Held
		case p.Get("ChannelState") == "6":
			facts.State = event.Talking
		}
		q.Objects = append(q.Objects, feed.Object{Account: q.accountOf(p), Kind: state.Call, ID: id, Facts: facts})
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
		q.Notes = append(q.Notes, "registrations cannot be corrected after a break without the action DeviceStateList: modules.conf: load = res_manager_devicestate.so")
	}
	if err != nil || !ok {
		return err
	}
	q.Kinds = append(q.Kinds, state.Device)
	endpoints := map[agentKey]bool{}
	for _, p := range items {
		account, endpoint := q.accountOf(p), cmp.Or(value(p, "Endpoint"), value(p, "Aor"))
		for _, id := range []string{endpoint, "PJSIP/" + endpoint} { // ContactStatus; PeerStatus
			if endpoint == "" || endpoints[agentKey{account, id}] {
				continue
			}
			endpoints[agentKey{account, id}] = true
			q.Objects = append(q.Objects, feed.Object{Account: account, Kind: state.Device, ID: id,
				Facts: event.Facts{AgentID: id, State: event.Registered}})
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
