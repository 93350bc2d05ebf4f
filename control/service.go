package control

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	keepFor        = 24 * time.Hour // the rows, and so the Idempotency-Keys
	storeTimeout   = 5 * time.Second
	confirmTimeout = 10 * time.Second
	watchInterval  = 200 * time.Millisecond
	sweepInterval  = 5 * time.Second
	rateWindow     = time.Minute
	rateMax        = 60 // actions of a user in rateWindow
)

// Roster has the state of agents and calls.
type Roster interface {
	// Entries returns the state of an account's agents and calls and of those below it.
	Entries(ctx context.Context, account string) (map[state.Key]*state.Entry, error)
}

// Users finds users and accounts.
type Users interface {
	// FindUser returns the user with the id. Returns fault.KindNotFound for an unknown one. It does not
	// check who asks.
	FindUser(ctx context.Context, id string) (identity.User, error)
	// Tree returns the current account tree. It does no I/O.
	Tree() *identity.Tree
}

// Destinations decides to which numbers an account's calls may be transferred.
type Destinations interface {
	Check(ctx context.Context, accountID, userID, destination string) error
}

// Publisher publishes an event of format trunkline.event.
type Publisher interface {
	Publish(ctx context.Context, accountID string, data []byte) error
}

// OwnCalls ends calls that Trunkline places itself (click to call); *origination.Service implements it.
type OwnCalls interface {
	// CheckCancel returns the account of a call that the caller may end. Returns fault.KindNotFound for one
	// that the caller does not see, fault.KindForbidden for another's, and fault.KindConflict for one that has
	// ended.
	CheckCancel(ctx context.Context, caller *identity.Principal, callID string) (accountID string, err error)
	// HangUp ends a call, on whatever node it is. It does not check who asks.
	HangUp(ctx context.Context, callID string) error
	// HasEnded reports whether a call has ended.
	HasEnded(ctx context.Context, callID string) (bool, error)
}

// Deps are the dependencies of a Service.
type Deps struct {
	DB           *sqldb.DB
	Roster       Roster
	Users        Users
	Limiter      identity.Limiter // counts actions
	Destinations Destinations
	Publisher    Publisher
	Nodes        Nodes
	OwnCalls     OwnCalls // nil: this process has none
	Audit        *audit.Log
	Metrics      prometheus.Registerer
	Log          *slog.Logger
	Now          func() time.Time // nil: time.Now
}

// Service takes actions and follows them to their end. It is safe for concurrent use.
type Service struct {
	db           *sqldb.DB
	roster       Roster
	users        Users
	limiter      identity.Limiter
	destinations Destinations
	publish      Publisher
	nodes        Nodes
	placed       OwnCalls // nil: this process has none
	audit        *audit.Log
	log          *slog.Logger
	now          func() time.Time
	metrics      *prometheus.CounterVec
	stored       chan struct{} // has one element after an action was stored: Run has something to follow
}

// New migrates the tables and returns the service.
func New(ctx context.Context, d Deps) (*Service, error) {
	if err := d.DB.Migrate(ctx, "control", migrations); err != nil {
		return nil, err
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Service{db: d.DB, roster: d.Roster, users: d.Users, limiter: d.Limiter, destinations: d.Destinations,
		publish: d.Publisher, nodes: d.Nodes, placed: d.OwnCalls, audit: d.Audit, log: d.Log, now: d.Now,
		metrics: newMetrics(d.Metrics), stored: make(chan struct{}, 1)}, nil
}

// Request is what a caller asks for. Exactly one of AgentID and CallID is set.
type Request struct {
	Caller  *identity.Principal
	Account identity.Account // X-Account-ID's, or the caller's own: the agent or call is its, or below it

	AgentID string
	CallID  string // or origination_call_id
	Action  feed.Action

	QueueID     string
	Reason      string
	Destination string
	Key         string // Idempotency-Key; "" for none

	// ServesCall says that an AI provider acts on the call that it serves: its calls bound it, no limit of
	// actions does, and a call that is not found, of two legs that are tried, leaves no entry of the audit log.
	ServesCall bool

	Hearing // of ActionHear
}

// Hearing says which AI provider hears a call.
type Hearing struct {
	ProviderID string // the AI provider
	SessionID  string // of the session that it will have
	ByRule     bool   // a rule asks, for each call of its queues: no limit of actions holds
}

// Act does an action and returns its id once the platform has taken it. Returns fault kinds:
// NotFound for what the caller does not see, Forbidden for what it may not act on, Conflict
// for what the platform or the state does not allow, Unprocessable without an extension to
// ring, Limited, Refused with the platform's words, and Unavailable.
func (s *Service) Act(ctx context.Context, r Request) (id string, err error) {
	target := "agent:" + r.AgentID
	if r.CallID != "" {
		target = "call:" + r.CallID
	}
	if r.ProviderID != "" {
		target += " ai_provider:" + r.ProviderID
	}

	newEntry := func() audit.Entry {
		return s.audit.Entry(ctx, auditAction(r), r.Account.ID, target+" "+string(r.Action))
	}
	defer func() {
		outcome := string(fault.KindOf(err))
		if err == nil {
			outcome = string(Accepted)
		}

		s.metrics.WithLabelValues(string(r.Action), outcome).Inc()
		unknownLeg := r.ServesCall && fault.KindOf(err) == fault.KindNotFound
		if err != nil && !unknownLeg {
			entry := newEntry() // one of its own, also where the start was recorded: the platform has refused
			entry.Outcome = outcome
			s.audit.Report(context.WithoutCancel(ctx), entry)
		}
	}()

	a, replayed, err := s.prepare(ctx, r)
	if err != nil {
		return "", err
	}

	if replayed {
		return s.awaitFirstAnswer(ctx, a)
	}

	// Nobody acts without an entry: it is durable before the command leaves.
	if err := s.audit.Record(ctx, newEntry()); err != nil {
		return "", s.refuse(ctx, a, err)
	}

	if err := s.dispatch(ctx, a); err != nil {
		return "", s.refuse(ctx, a, err)
	}

	_, err = s.change(ctx, a, Accepted, "", "", "", Sent)
	if err != nil {
		s.log.Warn("storing a taken action failed", "action_id", a.ID, "error", err) // the sweep ends it
	}

	return a.ID, nil
}

// dispatch sends an action to the node with its feed, or does it on a call of our own.
func (s *Service) dispatch(ctx context.Context, a *action) error {
	if a.Command.Feed != "" {
		return s.nodes.Send(ctx, a.Command.Feed, a.ID, s.TakeAndSend)
	}
	return s.TakeAndSend(ctx, a.ID, func(ctx context.Context, _ string, c feed.Command) error {
		return s.placed.HangUp(ctx, c.CallID)
	})
}

// prepare checks a request and stores its action. replayed is true for the action of an
// earlier request with the same Idempotency-Key.
func (s *Service) prepare(ctx context.Context, r Request) (a *action, replayed bool, err error) {
	user := r.Caller.Actor()
	var wait time.Duration
	if !r.ByRule && !r.ServesCall {
		wait = s.limiter.Fail(ctx, identity.Limit{Subject: "control:" + user, Max: rateMax, Window: rateWindow})
	}
	if wait > 0 {
		return nil, false, fault.Limited(wait, "Too many actions: 60 a minute are allowed")
	}
	if err := r.checkFields(); err != nil {
		return nil, false, err
	}
	if !mayAct(r.Caller.Role, r.Action) {
		return nil, false, fault.Forbidden("The role " + string(r.Caller.Role) + " may not do this")
	}

	hash := sha256.Sum256(
		[]byte(strings.Join(
			[]string{r.Account.ID, r.AgentID, r.CallID, string(r.Action), r.QueueID, r.Reason, r.Destination,
				r.ProviderID}, "\x00")))
	request := hex.EncodeToString(hash[:])

	// A repeated request gets the first one's answer, whatever the state of the agent or call has become since.
	if r.Key != "" {
		earlier, err := s.findAction(ctx, `actor = $1 AND idem_key = $2`, user, r.Key)
		if err == nil {
			return earlier, true, sameRequest(earlier, request)
		}
		if fault.KindOf(err) != fault.KindNotFound {
			return nil, false, err
		}
	}

	command, err := s.build(ctx, r)
	if err != nil {
		return nil, false, err
	}

	a = &action{ID: command.ID, AccountID: command.AccountID, Actor: user, Request: request, Command: *command,
		State: Asked}
	created, err := s.insert(ctx, a, r.Key)
	if err != nil || created {
		// Also after an error: the row may be there.
		select {
		case s.stored <- struct{}{}:
		default:
		}
		return a, false, err
	}

	// Either the key was taken in the meantime, or the target has an open action, and then nothing has the key.
	earlier, err := s.findAction(ctx, `actor = $1 AND idem_key = $2`, user, r.Key)
	if fault.KindOf(err) == fault.KindNotFound {
		return nil, false, fault.Conflict("Another action on it is on its way: wait for its end")
	}
	if err != nil {
		return nil, false, err
	}

	return earlier, true, sameRequest(earlier, request)
}

func sameRequest(earlier *action, request string) error {
	if earlier.Request != request {
		return fault.Conflict("The Idempotency-Key was used for another action")
	}
	return nil
}

// checkFields checks the fields of a request.
func (r *Request) checkFields() error {
	actions := feed.CallActions
	switch {
	case r.AgentID != "":
		actions = feed.AgentActions
	case r.ProviderID != "":
		actions = []feed.Action{feed.ActionHear}
	}

	switch {
	case !slices.Contains(actions, r.Action):
		return fault.InvalidField("action", "unsupported", "action is one of "+joinActions(actions))
	case r.QueueID == "" && (r.Action == feed.ActionJoin || r.Action == feed.ActionLeave):
		return fault.InvalidField("queue_id", "required", "queue_id is required")
	case r.QueueID != "" && r.Action != feed.ActionJoin && r.Action != feed.ActionLeave && r.Action != feed.ActionLogin:
		return fault.InvalidField("queue_id", "unsupported", "queue_id is for login, join and leave")
	case r.Reason != "" && r.Action != feed.ActionBreak:
		return fault.InvalidField("reason", "unsupported", "reason is for break")
	case r.Destination == "" && r.Action == feed.ActionTransfer:
		return fault.InvalidField("destination", "required", "destination is required")
	case r.Destination != "" && r.Action != feed.ActionTransfer:
		return fault.InvalidField("destination", "unsupported", "destination is for transfer")
	case len(r.Reason) > 256 || len(r.Destination) > 64 || len(r.QueueID) > identity.MaxFilterID || len(r.Key) > 255:
		return fault.Invalid("A field is too long")
	}

	return nil
}

func joinActions(actions []feed.Action) string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// mayAct reports whether a role may do an action on some agent or call at all.
func mayAct(role identity.Role, action feed.Action) bool {
	switch role {
	case identity.RoleAdmin, identity.RoleSupervisor:
		return true
	case identity.RoleAgent:
		return !action.Monitors()
	}
	return false
}

func auditAction(r Request) audit.Action {
	switch {
	case r.AgentID != "":
		return audit.AgentControl
	case r.Action.Monitors():
		return audit.CallMonitor
	}
	return audit.CallControl
}

// build finds the agent or call, checks the caller's rights and the state, and returns the
// command.
func (s *Service) build(ctx context.Context, r Request) (*storedCommand, error) {
	entries, err := s.roster.Entries(ctx, r.Account.ID)
	if err != nil {
		return nil, err
	}

	e, err := findEntry(entries, r)
	if fault.KindOf(err) == fault.KindNotFound && r.CallID != "" && s.placed != nil {
		return s.buildOwn(ctx, r)
	}
	if err != nil {
		return nil, err
	}

	if err := checkState(e, entries, r); err != nil {
		return nil, err
	}

	account, _ := s.users.Tree().Account(e.AccountID)
	c := &storedCommand{Feed: feed.FeedOf(e.Source), Before: before{Queue: e.QueueID, Agent: e.AgentID},
		Command: feed.Command{
			ID: uuid.NewString(), Action: r.Action, AccountID: e.AccountID, Domain: account.Domain,
			QueueID: r.QueueID, Reason: r.Reason, Destination: r.Destination,
		}}
	if c.Feed == "" {
		return nil, fault.Conflict("No feed connects Trunkline to the platform of this %s", e.Kind)
	}
	if e.Kind == state.Agent {
		c.AgentID, c.AgentName, c.Queues = e.ID, e.AgentName, e.Queues
		return c, nil
	}

	// The request may have named the call by its origination_call_id: the platform knows it by this one.
	c.CallID, c.QueueID, c.AgentID = e.ID, e.QueueID, e.AgentID
	if r.Action == feed.ActionTransfer {
		if err := s.destinations.Check(ctx, e.AccountID, r.Caller.UserID, r.Destination); err != nil {
			return nil, err
		}
	}

	if r.Action == feed.ActionHear {
		c.ProviderID, c.SessionID, c.Caller = r.ProviderID, r.SessionID, feed.NumberOf(e.Caller)
		return c, nil
	}
	if !r.Action.Monitors() {
		return c, nil
	}
	if r.Caller.UserID == "" {
		return nil, fault.New(fault.KindUnprocessable, "An API key has no extension to ring")
	}

	user, err := s.users.FindUser(ctx, r.Caller.UserID)
	if err != nil {
		return nil, err
	}

	if user.PresenceID == "" {
		return nil, fault.New(fault.KindUnprocessable, "The user has no extension to ring: presence_id is not set")
	}

	own, _ := s.users.Tree().Account(user.AccountID)
	c.Extension, c.Domain, c.PhoneAccount = user.PresenceID, own.Domain, user.AccountID
	return c, nil
}

// buildOwn returns the command for a call of Trunkline's own, which no feed knows: it has no feed.
func (s *Service) buildOwn(ctx context.Context, r Request) (*storedCommand, error) {
	account, err := s.placed.CheckCancel(ctx, r.Caller, r.CallID)
	if err != nil {
		return nil, err
	}

	if !s.users.Tree().Contains(r.Account.ID, account) {
		return nil, fault.NotFound("Call not found")
	}

	c := &storedCommand{Command: feed.Command{ID: uuid.NewString(), Action: r.Action, AccountID: account,
		CallID: r.CallID}}
	if r.Action != feed.ActionHangup {
		return nil, feed.CannotDo("Trunkline's own PBX", c.Command, "its calls can only be hung up")
	}

	return c, nil
}

// findEntry returns the entry of a request. Returns fault.KindNotFound for one that the caller
// does not see, fault.KindForbidden for a queue that is not the caller's.
func findEntry(entries map[state.Key]*state.Entry, r Request) (*state.Entry, error) {
	sight := r.Caller.Sight()
	memberOf := func(account, agent string) string {
		known := entries[state.Key{Account: account, Kind: state.Agent, ID: agent}]
		if known == nil {
			return ""
		}
		return strings.Join(known.Queues, event.QueueSeparator)
	}

	for key, e := range entries {
		switch {
		// Ids are unique within an account only: one that is out of sight is passed over, for one below that is not.
		case key.Kind == state.Agent && r.AgentID == key.ID:
			if !sight.Admits(e.AccountID, e.ID, "", memberOf(e.AccountID, e.ID)) {
				continue
			}
			if r.QueueID != "" && sight.Role() == identity.RoleSupervisor && !sight.HasQueue(r.QueueID) {
				return nil, fault.Forbidden("The queue is not one of yours")
			}

			return e, nil
		case key.Kind == state.Call && r.CallID != "" && (r.CallID == key.ID || r.CallID == e.OriginationCallID) &&
			e.Live():
			// An agent sees a call that rings at his phone, too.
			for _, agent := range append([]string{e.AgentID}, e.Ringing...) {
				if sight.Admits(e.AccountID, agent, e.QueueID, memberOf(e.AccountID, agent)) {
					return e, nil
				}
			}
		}
	}

	if r.AgentID != "" {
		return nil, fault.NotFound("Agent not found")
	}

	return nil, fault.NotFound("Call not found")
}

// TakeAndSend sends the command of an action over this node's connection, once. It is called
// on the node that has the feed.
func (s *Service) TakeAndSend(ctx context.Context, id string,
	send func(ctx context.Context, feed string, c feed.Command) error) error {
	a, err := s.findAction(ctx, `id = $1`, id)
	if err != nil {
		return err
	}

	taken, err := s.change(ctx, a, Sent, "", "", "", Asked)
	if err != nil {
		return err
	}

	if !taken {
		return fault.Conflict("The action was sent already")
	}

	return send(ctx, a.Command.Feed, a.Command.Command)
}

// refuse ends an action that was not taken, and returns the error for the caller. Where
// nobody knows whether the platform took it, it stays open for confirmation.
func (s *Service) refuse(ctx context.Context, a *action, err error) error {
	f := fault.As(err)
	from := []State{Asked, Sent}
	// The platform may have taken it before the connection was lost: its event will tell. Another node may be
	// sending it just now.
	if f.Kind == fault.KindUnavailable {
		from = from[:1]
	}

	_, storeErr := s.change(ctx, a, Refused, "", f.Message, f.Kind, from...)
	if storeErr != nil {
		s.log.Warn("storing a refused action failed", "action_id", a.ID, "error", storeErr)
	}

	return err
}

// awaitFirstAnswer returns the answer to a repeated request: that of the first one.
func (s *Service) awaitFirstAnswer(ctx context.Context, a *action) (string, error) {
	// The first request may be on another node: only the database knows its answer.
	for deadline := s.now().Add(confirmTimeout); a.State == Asked || a.State == Sent; {
		if s.now().After(deadline) {
			return "", fault.Unavailable(nil, time.Second,
				"The first request with this Idempotency-Key has no answer yet")
		}

		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(watchInterval):
		}

		found, err := s.findAction(ctx, `id = $1`, a.ID)
		if err != nil {
			return "", err
		}

		a = found
	}

	if a.State == Refused && a.Kind != "" {
		return "", fault.New(a.Kind, "%s", a.Message)
	}

	return a.ID, nil
}

// Status is an action as clients see it.
type Status struct {
	ID      string      `json:"action_id"`
	Action  feed.Action `json:"action"`
	State   State       `json:"state"`
	At      float64     `json:"at"` // Unix seconds of the state
	EventID string      `json:"event_id,omitempty"`
	Message string      `json:"message,omitempty"`
}

// Find returns an action to the caller who asked for it, or to an administrator of its
// account. Returns fault.KindNotFound for others.
func (s *Service) Find(ctx context.Context, caller *identity.Principal, id string) (*Status, error) {
	a, err := s.findAction(ctx, `id = $1`, id)
	if err != nil {
		return nil, err
	}

	isAdmin := caller.Role == identity.RoleAdmin && s.users.Tree().Contains(caller.AccountID, a.AccountID)
	if a.Actor != caller.Actor() && !isAdmin {
		return nil, fault.NotFound("Action not found")
	}

	shown := &Status{ID: a.ID, Action: a.Command.Action, State: a.State, At: float64(a.ChangedAt.UnixMilli()) / 1000,
		EventID: a.EventID, Message: a.Message}
	if shown.State == Asked || shown.State == Sent {
		shown.State = Accepted
	}

	return shown, nil
}
