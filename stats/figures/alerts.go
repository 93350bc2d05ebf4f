package figures

import (
	"context"
	"encoding/json"
	"net/url"

	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/stats"
)

// Alert is an alert of an account that has begun. State is "active" or "ended".
type Alert struct {
	AccountID string `json:"account_id"`
	State     string `json:"state"`
	stats.AlertView

	startedMS int64
}

// AlertPage is one page of alerts, newest first.
type AlertPage = report.Page[Alert]

// States of alerts, and AlertsAll for both.
const (
	AlertsActive = "active"
	AlertsEnded  = "ended"
	AlertsAll    = "all"
)

// AlertFilter selects alerts.
type AlertFilter struct {
	report.Filter // the range is of their begin; unused with AlertsActive

	State   string // AlertsActive, AlertsEnded or AlertsAll
	QueueID string
	AgentID string
}

// ParseAlertFilter parses a query. Its error names every invalid parameter.
func ParseAlertFilter(values url.Values) (AlertFilter, error) {
	q := report.NewQuery(values)

	f := AlertFilter{State: q.Get("state"), QueueID: q.Text("queue_id", maxIDBytes),
		AgentID: q.Text("agent_id", maxIDBytes),
		Filter:  q.Filter()}
	switch f.State {
	case "":
		f.State = AlertsActive
	case AlertsActive:
	case AlertsEnded, AlertsAll:
		f.Start, f.End = q.Range()
	default:
		q.AddFault("state", "unsupported", "must be active, ended or all")
	}

	if f.State == AlertsActive && (values.Has("startDate") || values.Has("endDate")) {
		q.AddFault("state", "required", "must be ended or all with a range: active alerts have none")
	}

	return f, q.Err()
}

// ListAlerts returns the page of the filter's alerts behind its cursor.
func (s *Store) ListAlerts(ctx context.Context, f AlertFilter) (*AlertPage, error) {
	return report.Rows[Alert]{
		Read: func(ctx context.Context, after report.Cursor, limit int) ([]Alert, error) {
			return s.readAlerts(ctx, f, after, limit)
		},
		At: func(a *Alert) report.Cursor { return report.Cursor{Time: a.startedMS, ID: a.ID} },
	}.Page(ctx, f.Filter)
}

// readAlerts returns the filter's next alerts behind a cursor.
func (s *Store) readAlerts(ctx context.Context, f AlertFilter, after report.Cursor, limit int) ([]Alert, error) {
	w := &report.Conditions{}
	w.Add("account_id = ?", f.Account)
	switch f.State {
	case AlertsActive:
		w.Add("ended_ms = 0")
	case AlertsEnded:
		w.Add("ended_ms <> 0")
	}

	if f.State != AlertsActive {
		w.Add("started_ms BETWEEN ? AND ?", f.Start*1000, f.End*1000+999)
	}

	w.AddEqual("queue_id", f.QueueID)
	w.AddEqual("agent_id", f.AgentID)
	w.AddVisible(f.Visible, "queue_id", "agent_id")
	w.OrderAfter(after, "started_ms", "alert_id", limit)

	rows, err := s.db.QueryContext(ctx, "SELECT started_ms, ended_ms, alert FROM figures_alerts"+w.Text(), w.Args()...)
	return sqldb.Collect(rows, err, "reading alerts", func(scan sqldb.ScanFunc) (a Alert, err error) {
		var ended int64
		var text string
		if err := scan(&a.startedMS, &ended, &text); err != nil {
			return a, err
		}

		a.AccountID, a.State = f.Account, AlertsActive
		if ended != 0 {
			a.State = AlertsEnded
		}

		err = json.Unmarshal([]byte(text), &a.AlertView)
		return a, err
	})
}
