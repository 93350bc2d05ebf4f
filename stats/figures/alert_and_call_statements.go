package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
	"trunkline/stats"
)

// storeStatement is an SQL statement that stores an alert or an abandoned call. A repeated one changes
// nothing, and one of an earlier event replaces nothing.
type storeStatement struct {
	statement string
	args      []any
}

const (
	storeAlert = `INSERT INTO figures_alerts (account_id, alert_id, event_id, started_ms, ended_ms, queue_id, agent_id, alert)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (account_id, alert_id) DO UPDATE SET
		event_id = excluded.event_id, ended_ms = excluded.ended_ms, alert = excluded.alert WHERE figures_alerts.event_id <= excluded.event_id`
	storeAbandoned = `INSERT INTO figures_abandoned (account_id, call_id, entered_ms, event_id, abandoned_ms, wait_ms, short, queue_id, caller, interaction_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (account_id, call_id, entered_ms) DO UPDATE SET
		event_id = excluded.event_id, abandoned_ms = excluded.abandoned_ms, wait_ms = excluded.wait_ms, short = excluded.short
		WHERE figures_abandoned.event_id <= excluded.event_id`
	takeBackAbandoned = `DELETE FROM figures_abandoned WHERE account_id = $1 AND call_id = $2 AND entered_ms = $3 AND event_id <= $4`
)

// decodeAlertOrCall parses a record of cc.stats. ok is false of records of other kinds, and of
// alerts and calls that are not to be stored.
func decodeAlertOrCall(r *kafka.Record) (o storeStatement, ok bool, err error) {
	_, rest, _ := strings.Cut(string(r.Key), "|")
	word, _, _ := strings.Cut(rest, "|")
	if r.Value == nil || word != stats.WordAlert && word != stats.WordCall {
		return o, false, nil
	}

	id, err := event.ParseID(string(r.Header(state.HeaderEventID)))
	if err != nil {
		return o, true, fmt.Errorf("event_id: %w", err)
	}

	if word == stats.WordAlert {
		return decodeAlert(r, id)
	}

	return decodeAbandoned(r, id)
}

func decodeAlert(r *kafka.Record, id event.ID) (o storeStatement, ok bool, err error) {
	a, begun, err := stats.ParseAlert(string(r.Key), r.Value)
	if err != nil || !begun {
		return o, false, err
	}

	value, err := json.Marshal(a.View)
	if err != nil {
		return o, false, fmt.Errorf("the alert cannot be stored: %w", err)
	}
	if !report.Storable(a.AccountID + string(value) + a.View.QueueID + a.View.AgentID) {
		return o, false, errors.New("the alert cannot be stored: a text of it has bytes that no database takes")
	}

	return storeStatement{storeAlert,
		[]any{a.AccountID, a.View.ID, int64(id), a.StartedMS, a.EndedMS, a.View.QueueID, a.View.AgentID,
			string(value)}}, true, nil
}

func decodeAbandoned(r *kafka.Record, id event.ID) (o storeStatement, ok bool, err error) {
	c, err := stats.ParseAbandoned(string(r.Key), r.Value)
	if err != nil || !c.Abandoned && !c.TakenBack {
		return o, false, err
	}

	if !report.Storable(c.AccountID + c.CallID + c.QueueID + c.Caller + c.InteractionID) {
		return o, false, fmt.Errorf("the abandoned call cannot be stored")
	}
	if c.TakenBack {
		return storeStatement{takeBackAbandoned, []any{c.AccountID, c.CallID, c.EnteredMS, int64(id)}}, true, nil
	}

	var short int64
	if c.Short {
		short = 1
	}

	return storeStatement{storeAbandoned,
		[]any{c.AccountID, c.CallID, c.EnteredMS, int64(id), c.AbandonedMS, c.WaitMS, short, c.QueueID, c.Caller,
			c.InteractionID}}, true, nil
}
