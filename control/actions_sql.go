package control

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// State is the state of an action.
type State string

// The states. Clients see accepted and the last three.
const (
	Asked       State = "asked"
	Sent        State = "sent"
	Accepted    State = "accepted"
	Confirmed   State = "confirmed"
	Refused     State = "refused"
	Unconfirmed State = "unconfirmed"
)

// action is a stored action.
type action struct {
	ID          string
	AccountID   string // of the agent or call
	Actor       string // who asked, as in the audit log
	RequestHash string // of what was asked: an Idempotency-Key stands for the same request only
	Command     storedCommand
	State       State
	EventID     string     // of the event that confirmed it; ""
	Message     string     // why it was refused or is unconfirmed; ""
	Kind        fault.Kind // of a refusal, for a repeat's answer; ""
	CreatedAt   time.Time
	ChangedAt   time.Time // when it got its state
	Announced   State     // the last state of which an event was published
}

// storedCommand is what confirmation and another node need of an action.
type storedCommand struct {
	feed.Command
	Feed   string      `json:"feed"` // "" for a call of our own
	Before entryBefore `json:"before"`
	// PhoneAccount is the account of the user whose phone listens: that of the call, or one above it.
	PhoneAccount string `json:"phone_account,omitempty"`
}

// entryBefore is the state of a call when the action was requested.
type entryBefore struct {
	Queue string `json:"queue,omitempty"`
	Agent string `json:"agent,omitempty"`
}

const columns = `id, account_id, actor, request, command, state, event_id, message, kind, created_at, changed_at, announced`

// scan scans a row of columns.
func (a *action) scan(scan sqldb.ScanFunc) error {
	var command string
	var created, changed int64
	if err := scan(&a.ID, &a.AccountID, &a.Actor, &a.RequestHash, &command, &a.State, &a.EventID, &a.Message, &a.Kind,
		&created, &changed, &a.Announced); err != nil {
		return err
	}
	a.CreatedAt, a.ChangedAt = time.UnixMilli(created), time.UnixMilli(changed)
	return json.Unmarshal([]byte(command), &a.Command)
}

// target names the agent or call that takes one action at a time, "" for an action beside
// which others may be on their way: it changes nothing of what they wait for.
func (c *storedCommand) target() string {
	switch {
	case c.Action.Monitors():
		return ""
	case c.CallID != "":
		return "call:" + c.CallID
	}
	return "agent:" + c.AgentID
}

// insert stores an action with the state asked, and deletes the old ones. created is false if the actor has one with
// the key, or if another action on the agent or call has not ended: its event would be taken
// for this one's.
func (s *Service) insert(ctx context.Context, a *action, key string) (created bool, err error) {
	command, err := json.Marshal(a.Command)
	if err != nil {
		return false, fault.Internal(err, "The action could not be written")
	}

	now := s.now().UnixMilli()
	err = s.db.WithoutTx(ctx, func(tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM control_actions WHERE changed_at < $1`, now-retention.Milliseconds())
		if err != nil {
			return err
		}

		result, err := tx.ExecContext(ctx, `INSERT INTO control_actions
			(id, account_id, actor, idem_key, request, command, state, event_id, message, kind, created_at, changed_at, announced, target)
			VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', '', $8, $8, $7, $9) ON CONFLICT DO NOTHING`,
			a.ID, a.AccountID, a.Actor, sql.NullString{String: key, Valid: key != ""}, a.RequestHash, string(command),
			string(Asked), now, a.Command.target())
		if err != nil {
			return err
		}

		n, err := result.RowsAffected()
		created = n == 1
		return err
	})

	return created, sqldb.Wrap(err, "storing an action")
}

// findAction returns an action. Returns fault.KindNotFound for an unknown one.
func (s *Service) findAction(ctx context.Context, condition string, args ...any) (*action, error) {
	row := s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM control_actions WHERE `+condition, args...)
	return sqldb.Find(row, fault.NotFound("Action not found"), "reading an action",
		func(scan sqldb.ScanFunc) (*action, error) {
			a := &action{}
			return a, a.scan(scan)
		})
}

// listActions returns actions.
func (s *Service) listActions(ctx context.Context, condition string, args ...any) ([]*action, error) {
	rows, err := s.db.QueryContext(ctx,
		`SELECT `+columns+` FROM control_actions WHERE `+condition+` ORDER BY created_at LIMIT 500`, args...)
	return sqldb.Collect(rows, err, "reading actions", func(scan sqldb.ScanFunc) (*action, error) {
		a := &action{}
		return a, a.scan(scan)
	})
}

// change moves an action from one of the states to another and publishes it. changed is
// false if it was in none of them. A rule asks again for what was refused, with the same key.
func (s *Service) change(ctx context.Context, a *action, to State, eventID, message string, kind fault.Kind,
	from ...State) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()

	for _, state := range from {
		n, err := s.db.ExecWithoutTx(ctx,
			`UPDATE control_actions SET state = $1, event_id = $2, message = $3, kind = $4, changed_at = $5,
			idem_key = CASE WHEN $6 THEN NULL ELSE idem_key END WHERE id = $7 AND state = $8`, string(to), eventID,
			message, string(kind), s.now().UnixMilli(), to == Refused && a.Command.Action == feed.ActionAddListener,
			a.ID, string(state))
		if err != nil {
			return false, sqldb.Wrap(err, "storing the state of an action")
		}

		if n == 1 {
			a.State, a.EventID, a.Message, a.Kind = to, eventID, message, kind
			if to != Sent {
				s.announce(ctx, a)
			}
			return true, nil
		}
	}

	return false, nil
}

// announce publishes the state of an action. If that fails, Run does it later.
func (s *Service) announce(ctx context.Context, a *action) {
	data, err := json.Marshal(struct {
		Event     string      `json:"event"`
		AccountID string      `json:"account_id"`
		Timestamp int64       `json:"timestamp"` // Unix seconds
		ActionID  string      `json:"action_id"`
		Action    feed.Action `json:"action"`
		State     State       `json:"action_state"`
		Actor     string      `json:"actor"`
		AgentID   string      `json:"agent_id,omitempty"`
		CallID    string      `json:"call_id,omitempty"`
		QueueID   string      `json:"queue_id,omitempty"`
		EventID   string      `json:"event_id,omitempty"`
		Message   string      `json:"message,omitempty"`
	}{"control.action", a.AccountID, s.now().Unix(), a.ID, a.Command.Action, a.State, a.Actor, a.Command.AgentID,
		a.Command.CallID, a.Command.QueueID, a.EventID, a.Message})
	if err == nil {
		err = s.publisher.Publish(ctx, a.AccountID, data)
	}

	if err == nil {
		// Published but not marked, it is published again: an event may come twice, and never not at all.
		_, err = s.db.ExecWithoutTx(ctx, `UPDATE control_actions SET announced = $1 WHERE id = $2 AND announced <> $1`,
			string(a.State), a.ID)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("publishing an action failed, will retry", "action_id", a.ID, "error", err)
	}
}
