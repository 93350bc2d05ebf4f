package figures

import (
	"context"
	"encoding/json"
	"net/url"

	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/stats"
)

// Alert is an alert of an account that has begun. State is "active" or "ended".
type Alert struct {
	AccountID string `json:"account_id"`
	State     string `json:"state"`
	stats.AlertView
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
	Account string          // not a parameter
	Visible *report.Visible // not a parameter: what the caller's role sees

	State      string // AlertsActive, AlertsEnded or AlertsAll
	Start, End int64  // Unix seconds, inclusive, of their begin; unused with AlertsActive
	QueueID    string
	AgentID    string
	PageSize   int
	StartKey   string
}

// ParseAlertFilter parses a query. Its error names every invalid parameter.
func ParseAlertFilter(values url.Values) (AlertFilter, error) {
	q := report.NewQuery(values)
	f := AlertFilter{State: q.Get("state"), QueueID: q.Text("queue_id", maxID), AgentID: q.Text("agent_id", maxID),
		PageSize: q.PageSize(), StartKey: q.Get("start_key"), End: report.EndOfTime}
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
	checkStartKey(q, f.StartKey)
	return f, q.Err()
}

// checkStartKey adds a fault for a start key that no page has given.
func checkStartKey(q *report.Query, key string) {
	if _, ok := parseStartKey(key); !ok {
		q.AddFault("start_key", "invalid", "must be a page's next_start_key")
	}
}

// ListAlerts returns the page of the filter's alerts that begins at its start key.
func (s *Store) ListAlerts(ctx context.Context, f AlertFilter) (*AlertPage, error) {
	after, ok := parseStartKey(f.StartKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "start_key must be a page's next_start_key")
	}
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
	for column, value := range map[string]string{"queue_id": f.QueueID, "agent_id": f.AgentID} {
		if value != "" {
			w.Add(column+" = ?", value)
		}
	}
	w.AddVisible(f.Visible)
	if after != (cursor{}) {
		w.Add("(started_ms, alert_id) < (?, ?)", after.start, after.id)
	}
	w.OrderAndLimit("started_ms DESC, alert_id DESC", f.PageSize+1)

	page := &AlertPage{PageSize: f.PageSize}
	n, last := 0, cursor{}
	rows, err := s.db.QueryContext(ctx, "SELECT started_ms, ended_ms, alert FROM figures_alerts"+w.Text(), w.Args()...)
	found, err := sqldb.Collect(rows, err, "reading alerts", func(scan sqldb.ScanFunc) (a Alert, err error) {
		var started, ended int64
		var text string
		if err := scan(&started, &ended, &text); err != nil {
			return a, err
		}
		a.AccountID, a.State = f.Account, AlertsActive
		if ended != 0 {
			a.State = AlertsEnded
		}
		err = json.Unmarshal([]byte(text), &a.AlertView)
		n++
		if n == f.PageSize {
			last = cursor{started, a.ID}
		}
		return a, err
	})
	if err != nil {
		return nil, err
	}
	page.Data = found
	if len(found) > f.PageSize {
		page.Data, page.NextStartKey = found[:f.PageSize], last.key()
	}
	if page.Data == nil {
		page.Data = []Alert{}
	}
	return page, nil
}
