package cdrindex

import (
	"net/url"

	"trunkline/event"
	"trunkline/internal/report"
)

// Filter selects rows of a report; see docs/api.md.
type Filter struct {
	report.Filter

	OriginationCallID string // the one row of Find
	InteractionID     string
	CallID            string
	From, To          string
	Number            string // From or To
	QueueID, AgentID  string
}

// ParseFilter parses a request's query and Accept header. Its error names every invalid
// parameter. Other parameters are ignored.
func ParseFilter(values url.Values, accept string) (Filter, error) {
	q := report.NewQuery(values)
	f := Filter{
		OriginationCallID: q.Text("origination_call_id", event.MaxCDRID),
		InteractionID:     q.Text("interaction_id", event.MaxCDRID),
		CallID:            q.Text("call_id", event.MaxCDRID),
		From:              q.Text("from", event.MaxCDRText),
		To:                q.Text("to", event.MaxCDRText),
		Number:            q.Text("number", event.MaxCDRText),
		QueueID:           q.Text("queue_id", event.MaxCDRText),
		AgentID:           q.Text("agent_id", event.MaxCDRText),
		Filter:            q.FilterOfRange(accept),
	}
	if f.CSV && f.OriginationCallID != "" {
		q.AddFault("origination_call_id", "unsupported", "is not available as CSV")
	}

	if err := q.Err(); err != nil {
		return Filter{}, err
	}

	return f, nil
}
