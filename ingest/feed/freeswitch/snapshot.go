package freeswitch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format/freeswitch"
	"trunkline/ingest/feed"
	"trunkline/telephony/esl"
)

// maxLookups is the largest number of channels of a snapshot whose variables are queried.
const maxLookups = 2000

// reloadTime is the longest time for which a reload of mod_callcenter leaves the switch without it.
const reloadTime = 10 * time.Second

// Snapshot implements feed.Session.
func (s *session) Snapshot(ctx context.Context) (feed.Snapshot, error) {
	if err := s.waitForTables(ctx); err != nil {
		return feed.Snapshot{}, err
	}

	b := snapshotBuilder{session: s, servedCalls: make(map[string]event.Facts)}
	s.mu.Lock()
	b.Notes = slices.Clone(s.notes)
	// Before the queries: what changes during them is an event that the feed reads.
	b.RecentlyChanged = s.recent.since(time.Now().Add(-s.tableLag))
	s.mu.Unlock()

	queues, err := b.addQueues(ctx)
	if err != nil {
		return feed.Snapshot{}, err
	}

	channels, err := b.addChannels(ctx)
	if err != nil {
		return feed.Snapshot{}, err
	}

	// Callers in queues and legs are both calls: without one list, those on the other would seem to have ended.
	if queues && channels {
		b.CompleteKinds = append(b.CompleteKinds, state.Call)
	}
	if err := b.addDevices(ctx); err != nil {
		return feed.Snapshot{}, err
	}

	return b.Snapshot, nil
}

// waitForTables waits until the core's tables include all changes before the connect, and mod_callcenter's
// those of the last command.
func (s *session) waitForTables(ctx context.Context) error {
	changed := s.connectedAt
	at := s.lastQueuesChange()
	if at.After(changed) {
		changed = at
	}

	wait := time.NewTimer(time.Until(changed.Add(s.tableLag)))
	defer wait.Stop()

	select {
	case <-wait.C:
		return nil
	case <-s.conn.Done():
		return s.conn.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastQueuesChange returns the time of the last command that changes agents, tiers or queues; zero: none.
func (s *session) lastQueuesChange() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queuesChangeAt
}

// snapshotBuilder builds a feed.Snapshot.
type snapshotBuilder struct {
	*session
	feed.Snapshot
	servedCalls map[string]event.Facts // the agent's caller, by agent
}

// addQueues adds the callers in queues and the agents. ok reports whether all
// callers are known.
func (b *snapshotBuilder) addQueues(ctx context.Context) (ok bool, err error) {
	var agents, tiers table
	err = b.accountCache.askForAgents(func() (err error) {
		agents, tiers, err = b.queryAgents(ctx)
		return err
	})
	// Nobody is to be logged out by a reload.
	if notLoaded(err) && time.Since(b.lastQueuesChange()) < reloadTime {
		return false, fmt.Errorf("mod_callcenter is being loaded: %w", err) // the feed tries again
	}
	if notLoaded(err) {
		b.Notes = append(b.Notes,
			"mod_callcenter is not loaded: no agents and no queues. Where the switch has queues: "+
				"<load module=\"mod_callcenter\"/> in modules.conf.xml")
		return true, nil
	}
	if err != nil {
		return false, b.noteRefusal(err)
	}

	queues, err := b.queryTable(ctx, "callcenter_config queue list", "record_template")
	if err != nil {
		return false, b.noteRefusal(err)
	}

	var commands []string
	for _, row := range queues.rows {
		commands = append(commands, "callcenter_config queue list members "+queues.get(row, "name"))
	}

	// Callers before agents: an agent's call is the caller that it serves.
	for i, response := range b.conn.APIBatch(ctx, commands) {
		members, err := readTable(commands[i], "cid_name", response)
		if err != nil {
			return false, b.noteRefusal(err)
		}

		for _, member := range members.rows {
			b.addMember(members, member)
		}
	}

	memberships := queuesOf(tiers)
	for _, row := range agents.rows {
		b.addAgent(agents, row, memberships)
	}

	b.CompleteKinds = append(b.CompleteKinds, state.Agent)
	return true, nil
}

// notLoaded reports whether the switch does not have the command.
func notLoaded(err error) bool {
	var refusal *esl.Refusal
	return errors.As(err, &refusal) && strings.Contains(refusal.Reply, "ommand not found")
}

// noteRefusal adds a note about a query that the switch refused, and returns any other error.
func (b *snapshotBuilder) noteRefusal(err error) error {
	if !isRefusal(err) {
		return err
	}
	b.Notes = append(b.Notes,
		fmt.Sprintf("%v: allow the user callcenter_config, show, status and uuid_getvar with esl-allowed-api in the directory; "+
			"show needs the core's database (not started with -nosql)", err))
	return nil
}

// addMember adds a caller in a queue.
func (b *snapshotBuilder) addMember(t table, row []string) {
	callerState := t.get(row, "state")
	facts := event.Facts{
		State: freeswitch.MemberStateOf(callerState), QueueID: t.get(row, "queue"), CallID: t.get(row, "uuid"),
		Caller: t.get(row, "cid_number"), InteractionID: t.get(row, "session_uuid"),
	}
	if facts.State == "" || facts.CallID == "" {
		return
	}

	known := b.accountCache.leg(facts.InteractionID)
	if known.interaction != "" {
		facts.InteractionID = known.interaction
	}

	joined, bridged := epoch(t.get(row, "joined_epoch")), epoch(t.get(row, "bridge_epoch"))
	switch facts.State {
	case event.Waiting:
		facts.TimestampMS = joined
	case event.Talking:
		facts.TimestampMS = bridged
		if joined != 0 && bridged != 0 {
			facts.WaitMS = event.MillisOf(bridged - joined)
		}
	}

	// With a strategy that rings many agents, the column has the strategy's name.
	agent := t.get(row, "serving_agent")
	if facts.State != event.Waiting && agent != "" && agent != "ring-all" && agent != "ring-progressively" {
		facts.AgentID = agent
		b.servedCalls[agent] = facts
	}

	b.add(state.Call, facts.CallID, facts, nil, domainOf(facts.QueueID), facts.QueueID)
}

// addAgent adds an agent with the call that it serves.
func (b *snapshotBuilder) addAgent(t table, row []string, memberships map[string][]string) {
	agent := t.get(row, "name")
	if agent == "" {
		return
	}

	facts := event.Facts{AgentID: agent, Agent: freeswitch.AgentOf(t.get(row, "status"), t.get(row, "state"))}
	since := []string{"last_status_change", "last_bridge_end"}
	switch facts.State = facts.Agent.Presence; facts.Agent.Activity {
	case event.ActivityRinging:
		facts.State, since = event.Ringing, []string{"last_offered_call"}
	case event.ActivityTalking:
		facts.State, since = event.Talking, []string{"last_bridge_start"}
	case event.ActivityNotReady:
		if facts.State == event.Available {
			facts.State = event.OtherState
		}
	}

	for _, column := range since {
		facts.TimestampMS = max(facts.TimestampMS, epoch(t.get(row, column)))
	}

	call, serves := b.servedCalls[agent]
	if serves && (facts.State == event.Ringing || facts.State == event.Talking) {
		facts.CallID = call.CallID
		facts.QueueID = call.QueueID
		facts.Caller = call.Caller
		facts.InteractionID = call.InteractionID
	}

	queues := slices.Sorted(slices.Values(memberships[agent]))
	if queues == nil {
		queues = []string{}
	}

	names, _ := b.accountCache.agentAccountNames(agent)
	b.add(state.Agent, agent, facts, queues, names...)
	b.Objects[len(b.Objects)-1].LastCallMS = epoch(t.get(row, "last_bridge_end"))
}

// addChannels adds the legs. ok reports whether all are known.
func (b *snapshotBuilder) addChannels(ctx context.Context) (ok bool, err error) {
	rows, err := queryRows[channelRow](ctx, b.session, "show channels as json")
	if err != nil {
		return false, b.noteRefusal(err)
	}

	var unknown []legWithoutAccount
	for _, row := range rows {
		if row.UUID == "" {
			continue
		}

		facts := row.facts()
		known := b.accountCache.leg(row.UUID)
		if known.interaction != "" {
			facts.InteractionID = known.interaction
		}

		o := feed.Object{Account: known.account, Kind: state.Call, ID: row.UUID, Facts: facts}
		// The variable is not in the list, and decides before the names that are.
		if o.Account == "" && b.accountVariable == "" {
			o.Account = b.accounts.Account(row.names(b.useAccountcode)...)
		}
		if o.Account == "" && len(unknown) < maxLookups {
			unknown = append(unknown, legWithoutAccount{len(b.Objects), row.names(b.useAccountcode)})
		}

		b.Objects = append(b.Objects, o)
	}

	return true, b.lookUpAccounts(ctx, unknown)
}

// legWithoutAccount is a leg whose account has to be found by its variables.
type legWithoutAccount struct {
	object int      // index in Snapshot.Objects
	names  []string // names to try after those of the variables
}

// lookUpAccounts queries the variables that name the accounts of legs.
func (b *snapshotBuilder) lookUpAccounts(ctx context.Context, legs []legWithoutAccount) error {
	variables := []string{"domain_name", "sip_auth_realm"}
	if b.accountVariable != "" {
		variables = slices.Insert(variables, 0, b.accountVariable)
	}

	var commands []string
	for _, leg := range legs {
		for _, variable := range variables {
			commands = append(commands, "uuid_getvar "+b.Objects[leg.object].ID+" "+variable)
		}
	}

	responses := b.conn.APIBatch(ctx, commands)
	for i, leg := range legs {
		var names []string
		ended := false
		for _, response := range responses[i*len(variables):][:len(variables)] {
			switch value := strings.TrimSpace(response.Output); {
			case isRefusal(response.Err): // the leg has ended
				ended = true
			case response.Err != nil:
				return fmt.Errorf("asking for a variable of a channel: %w", response.Err)
			case value != "_undef_":
				names = append(names, value)
			}
		}

		// A leg that has ended is left without an account, and so out of the comparison.
		if !ended {
			b.Objects[leg.object].Account = b.accounts.Account(append(names, leg.names...)...)
		}
	}

	return nil
}

// facts returns the facts of a leg as the format derives them from an event.
func (r *channelRow) facts() event.Facts {
	facts := event.Facts{
		CallID: r.UUID, State: freeswitch.LegStateOf(r.CallState), Caller: r.CallerNumber, Callee: r.Destination,
		InteractionID: freeswitch.LegInteraction(r.Direction, r.UUID, r.CallUUID),
	}
	listens, isListener := strings.CutPrefix(r.PresenceData, listenerTag)
	if isListener {
		facts.InteractionID = listens
	}

	user, _, isUser := strings.Cut(r.PresenceID, "@")
	if isUser && user != "" && r.Direction == "outbound" && !strings.HasPrefix(r.Name, "loopback/") {
		facts.Callee = user // the destination is the contact of the user's phone
	}
	if facts.State == event.Ringing {
		facts.TimestampMS = epoch(r.CreatedEpoch)
	}
	if r.Application == "valet_park" {
		facts.State, facts.Reason = event.Held, event.ReasonParked
	}

	return facts
}

// names returns the names that may map to the leg's account. The presence id of an inbound leg is not
// one of them: it is the From header, which the caller writes.
func (r *channelRow) names(billing bool) []string {
	names := []string{r.Context, r.InitialContext}
	if r.Direction != "inbound" {
		names = append([]string{domainOf(r.PresenceID)}, names...)
	}
	if billing {
		names = append([]string{r.Accountcode}, names...)
	}
	return names
}

// addDevices adds the registrations. Several registrations of a device are one object.
func (b *snapshotBuilder) addDevices(ctx context.Context) error {
	rows, err := queryRows[registrationRow](ctx, b.session, "show registrations as json")
	if err != nil {
		return b.noteRefusal(err)
	}

	seen := make(map[string]bool)
	for _, row := range rows {
		id := row.User
		if row.Realm != "" && id != "" && !strings.Contains(id, "@") {
			id += "@" + row.Realm
		}
		if id == "" || seen[id] {
			continue
		}

		seen[id] = true
		b.add(state.Device, id, event.Facts{AgentID: id, State: event.Registered}, nil, row.Realm, domainOf(id))
	}

	b.CompleteKinds = append(b.CompleteKinds, state.Device)
	return nil
}

// add adds an object, whose account is looked up by names.
func (b *snapshotBuilder) add(kind state.Kind, id string, facts event.Facts, queues []string, names ...string) {
	b.Objects = append(b.Objects, feed.Object{
		Account: b.accounts.Account(names...), Kind: kind, ID: id, Facts: facts, Queues: queues,
	})
}

// queryRows queries a list in JSON.
func queryRows[Row any](ctx context.Context, s *session, command string) ([]Row, error) {
	response, err := s.conn.API(ctx, command)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", command, err)
	}
	rows, err := parseRows[Row](response)
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", command, err)
	}
	return rows, nil
}

// epoch converts Unix seconds to Unix milliseconds; other text becomes 0.
func epoch(text string) int64 {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return 0
	}
	return seconds * 1000
}
