package kazoo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/kazoo"
	"trunkline/ingest/feed"
	"trunkline/internal/jsonscan"
	"trunkline/telephony/crossbar"
)

// Snapshot implements feed.Session. It requests from Crossbar, for the API key's account and all
// accounts below it:
//
//   - agents: /agents and /agents/status, for agents whose last status is older than
//     the statuses' window (a day) /agents/ID/status;
//   - calls: /queues/stats for those that wait in a queue or are with an agent, /channels for all legs;
//   - devices: /registrations.
//
// A kind is complete if the requests of all accounts succeeded. Crossbar also returns no registrations
// if it failed to collect them, and no agents without ACDc, so a kind with no object in any account is
// not complete.
func (s *session) Snapshot(ctx context.Context) (feed.Snapshot, error) {
	c := s.platform.crossbar
	if c == nil {
		return feed.Snapshot{Notes: []string{"crossbar_url is not set: agents, calls and registrations cannot be compared after a break"}},
			nil
	}

	accounts, err := accountsBelow(ctx, c)
	if errors.Is(err, crossbar.ErrKeyRefused) {
		return feed.Snapshot{Notes: []string{"Crossbar refuses crossbar_api_key: it is api_key of GET /v2/accounts/ACCOUNT/api_key"}},
			nil
	}
	if err != nil {
		return feed.Snapshot{}, err
	}

	s.platform.setRealms(accounts)
	b := &snapshotBuilder{platform: s.platform, errors: map[state.Kind]error{}, counts: map[state.Kind]int{}}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallelRequests)

	for _, a := range accounts {
		for kind, addKind := range map[state.Kind]func(context.Context, kazooAccount) error{
			state.Agent: b.addAgents, state.Call: b.addCalls, state.Device: b.addDevices,
		} {
			group.Go(func() error {
				if err := addKind(ctx, a); err != nil {
					b.setError(kind, err)
				}
				return ctx.Err()
			})
		}
	}

	if err := group.Wait(); err != nil {
		return feed.Snapshot{}, fmt.Errorf("asking Crossbar: %w", err)
	}

	return b.build(), nil
}

// snapshotBuilder collects a snapshot from parallel requests.
type snapshotBuilder struct {
	platform *platform

	mu      sync.Mutex
	objects []feed.Object
	counts  map[state.Kind]int   // of objects
	errors  map[state.Kind]error // last error of each kind
}

// build returns the snapshot once all requests have ended.
func (b *snapshotBuilder) build() feed.Snapshot {
	b.joinOffers()
	snapshot := feed.Snapshot{Objects: b.objects}
	for _, kind := range []state.Kind{state.Agent, state.Call, state.Device} {
		switch err := b.errors[kind]; {
		case err != nil:
			snapshot.Notes = append(snapshot.Notes, fmt.Sprintf("Crossbar did not tell all of kind %s: %v", kind, err))
		// A Kazoo without any call is idle; one without any agent or phone did not answer fully.
		case kind == state.Call || b.counts[kind] > 0:
			snapshot.CompleteKinds = append(snapshot.CompleteKinds, kind)
		default:
			snapshot.Notes = append(snapshot.Notes, fmt.Sprintf("Crossbar does not support kind %s", kind))
		}
	}

	return snapshot
}

// joinOffers sets the state of callers in queues for whom an agent's phone rings: the
// statistics of calls have them as waiting.
func (b *snapshotBuilder) joinOffers() {
	type call struct{ account, id string }
	offered := map[call]string{}
	for _, o := range b.objects {
		if o.Kind == state.Agent && o.Facts.State == event.Ringing && o.Facts.CallID != "" {
			offered[call{o.Account, o.Facts.CallID}] = o.ID
		}
	}

	for i := range b.objects {
		o := &b.objects[i]
		agent := offered[call{o.Account, o.ID}]
		if o.Kind == state.Call && o.Facts.State == event.Waiting && agent != "" {
			o.Facts.State, o.Facts.AgentID = event.Ringing, agent
		}
	}
}

func (b *snapshotBuilder) setError(kind state.Kind, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors[kind] = err
}

// addObjects adds the objects of one of Kazoo's accounts.
func (b *snapshotBuilder) addObjects(a kazooAccount, objects []feed.Object) {
	id, _ := b.platform.resolveAccount(a.ID, a.Realm)
	if id == "" { // records of this account are not stored
		return
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	for _, o := range objects {
		o.Account = id
		b.objects = append(b.objects, o)
		b.counts[o.Kind]++
	}
}

// agentStatus is a status of an agent in ACDc's statistics.
type agentStatus struct {
	Status    string          `json:"status"`
	Timestamp json.RawMessage `json:"timestamp"` // Gregorian seconds
	CallID    string          `json:"call_id"`
	Caller    string          `json:"caller_id_number"`
	QueueID   string          `json:"queue_id"`
	Reason    string          `json:"pause_alias"`
}

func (b *snapshotBuilder) addAgents(ctx context.Context, a kazooAccount) error {
	var listed []struct {
		ID     string   `json:"id"`
		First  string   `json:"first_name"`
		Last   string   `json:"last_name"`
		Queues []string `json:"queues"`
	}
	err := b.platform.crossbar.Get(ctx, crossbar.AccountPath(a.ID, "agents")+"?paginate=false", &listed)
	if errors.Is(err, crossbar.NotFound) || err == nil && len(listed) == 0 {
		return nil // ACDc is not installed, or has no agents in this account
	}
	if err != nil {
		return err
	}

	var byAgent map[string]json.RawMessage
	if err := b.platform.crossbar.Get(ctx, crossbar.AccountPath(a.ID, "agents", "status"), &byAgent); err != nil {
		return err
	}

	var objects []feed.Object
	for _, agent := range listed {
		status, err := latestStatus(byAgent[agent.ID])
		if err != nil {
			return err
		}

		if status.Status == "" {
			if err := b.platform.crossbar.Get(ctx, crossbar.AccountPath(a.ID, "agents", agent.ID, "status"),
				&status.Status); err != nil {
				return err
			}
		}

		o := feed.Object{Kind: state.Agent, ID: agent.ID, Facts: event.Facts{
			AgentID: agent.ID, AgentName: strings.TrimSpace(agent.First + " " + agent.Last), State: event.Offline,
		}}

		if status.Status != "unknown" { // no status in this month and the one before
			o.Facts.State = kazoo.AgentState(status.Status)
		}
		if o.Facts.State == event.Break && status.Reason != "" {
			o.Facts.Agent = &event.AgentReport{Presence: event.Break, Activity: event.ActivityNone,
				Reason: status.Reason}
		}
		if ms, ok := format.UnixMillis(jsonscan.Value(status.Timestamp)); ok {
			o.Facts.TimestampMS = ms
		}

		switch o.Facts.State {
		case event.Ringing, event.Talking:
			o.Facts.CallID, o.Facts.Caller, o.Facts.QueueID = status.CallID, status.Caller, status.QueueID
		}

		// Whoever is logged out is in no queue, and Kazoo lists those of the next login.
		if o.Facts.State != event.Offline {
			o.Queues = append([]string{}, agent.Queues...)
		}

		objects = append(objects, o)
	}

	b.addObjects(a, objects)
	return nil
}

// latestStatus returns the latest of an agent's statuses by their timestamps.
func latestStatus(text json.RawMessage) (last agentStatus, err error) {
	if len(text) == 0 {
		return last, nil
	}

	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return last, fmt.Errorf("reading the statuses of an agent: %w", err)
	}

	_, isSingle := all["status"]
	if isSingle {
		err := json.Unmarshal(text, &last)
		return last, err
	}

	var at string
	for key, text := range all { // Gregorian seconds: of the same length for ages
		if len(key) < len(at) || len(key) == len(at) && key < at {
			continue
		}

		var status agentStatus
		if err := json.Unmarshal(text, &status); err != nil {
			return last, fmt.Errorf("reading the status of an agent: %w", err)
		}

		at, last = key, status
	}

	return last, nil
}

func (b *snapshotBuilder) addCalls(ctx context.Context, a kazooAccount) error {
	var channels []struct {
		ID          string `json:"uuid"`
		Answered    bool   `json:"answered"`
		OnHold      bool   `json:"is_onhold"`
		Interaction string `json:"interaction_id"`
		Destination string `json:"destination"`
	}
	path := crossbar.AccountPath(a.ID, "channels") + "?paginate=false"
	if err := b.platform.crossbar.Get(ctx, path, &channels); err != nil {
		return err
	}

	inQueues, hasACDc, err := b.queueCalls(ctx, a)
	if err != nil {
		return err
	}

	var objects []feed.Object
	for _, c := range channels {
		facts, inQueue := inQueues[c.ID]
		facts.CallID, facts.InteractionID = c.ID, c.Interaction
		switch {
		case inQueue:
		case c.OnHold:
			facts.State = event.Held
		case c.Answered && hasACDc: // a caller's channel is answered while the caller waits in a queue
			facts.State = event.Talking
		}

		if facts.Callee == "" {
			facts.Callee = c.Destination
		}

		objects = append(objects, feed.Object{Kind: state.Call, ID: c.ID, Facts: facts, Leg: true})
	}

	b.addObjects(a, objects)
	return nil
}

// queueCalls returns the facts of the calls that wait in queues or are with an agent. hasACDc is false
// without ACDc.
func (b *snapshotBuilder) queueCalls(ctx context.Context,
	a kazooAccount) (facts map[string]event.Facts, hasACDc bool, err error) {
	var response struct {
		Stats []struct {
			Status  string          `json:"status"`
			CallID  string          `json:"call_id"`
			QueueID string          `json:"queue_id"`
			AgentID string          `json:"agent_id"`
			Caller  string          `json:"caller_id_number"`
			Entered json.RawMessage `json:"entered_timestamp"`
			Handled json.RawMessage `json:"handled_timestamp"`
		} `json:"stats"`
	}
	err = b.platform.crossbar.Get(ctx, crossbar.AccountPath(a.ID, "queues", "stats"), &response)
	if errors.Is(err, crossbar.NotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	facts = map[string]event.Facts{}
	for _, s := range response.Stats {
		f := event.Facts{CallID: s.CallID, QueueID: s.QueueID, Caller: s.Caller}
		at := s.Entered
		switch s.Status {
		case "waiting":
			f.State = event.Waiting
		case "handled":
			f.State, f.AgentID, at = event.Talking, s.AgentID, s.Handled
		default:
			continue
		}

		if ms, ok := format.UnixMillis(jsonscan.Value(at)); ok {
			f.TimestampMS = ms
		}

		facts[s.CallID] = f
	}

	return facts, true, nil
}

func (b *snapshotBuilder) addDevices(ctx context.Context, a kazooAccount) error {
	var registrations []struct {
		Username string `json:"username"`
		Realm    string `json:"realm"`
	}
	if err := b.platform.crossbar.Get(ctx, crossbar.AccountPath(a.ID, "registrations")+"?paginate=false",
		&registrations); err != nil {
		return err
	}

	seen := map[string]bool{}
	var objects []feed.Object
	for _, r := range registrations {
		id := r.Username // the id that format/kazoo gives a registration
		if id != "" && r.Realm != "" {
			id += "@" + r.Realm
		}
		if id == "" || seen[id] {
			continue
		}

		seen[id] = true
		objects = append(objects,
			feed.Object{Kind: state.Device, ID: id, Facts: event.Facts{AgentID: id, State: event.Registered}})
	}

	b.addObjects(a, objects)
	return nil
}
