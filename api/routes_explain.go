package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/event"
	"trunkline/explain"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/webhook"
)

// Explain returns the outcomes of events.
type Explain interface {
	// Explain explains an event. Returns fault.KindNotFound if there is none or the caller cannot
	// access its account, fault.KindGone if the log begins after its id.
	Explain(ctx context.Context, q explain.Question) (*explain.Explanation, error)
}

// explainRoutes are for administrators and API keys with the scope admin.
type explainRoutes struct {
	explain Explain
	auth    auth
}

func (r explainRoutes) routes() []route {
	return []route{{method: http.MethodGet, path: "/api/v2/events/:id/explain",
		handle: authorized(r.auth.authenticateAnyAdmin, r.handleGet), also: auditors, scope: identity.ScopeAdmin,
		query: []string{"client", "user"}}}
}

func (r explainRoutes) handleGet(c echo.Context, caller *identity.Principal) error {
	id, err := event.ParseID(c.Param("id"))
	if err != nil {
		return fault.InvalidField("id", "invalid", "id: "+err.Error())
	}

	q := report.NewQuery(c.QueryParams())
	question := explain.Question{ID: id, Root: caller.AccountID, Client: q.Get("client"), User: q.Get("user")}
	if err := q.Err(); err != nil {
		return err
	}

	e, err := r.explain.Explain(c.Request().Context(), question)
	if err != nil {
		return err
	}

	view := viewExplanation(e)
	if caller.Role == identity.RoleAuditor { // who sees no events
		view.hideContents()
	}

	return writeJSON(c, http.StatusOK, view)
}

// explanationView is the JSON of an explanation. Times are Unix seconds with a fraction,
// absent if unknown.
type explanationView struct {
	Event struct {
		ID        event.ID        `json:"id"`
		AccountID string          `json:"account_id"`
		Position  string          `json:"position"` // in cc.evt
		Message   json.RawMessage `json:"message"`
	} `json:"event"`
	Raw struct {
		Position  string            `json:"position,omitempty"` // in cc.raw
		Available bool              `json:"available"`
		At        float64           `json:"at,omitempty"`
		Key       string            `json:"key,omitempty"`
		Headers   map[string]string `json:"headers,omitempty"`
	} `json:"raw"`
	Format struct {
		Name string             `json:"name"`
		From explain.FormatFrom `json:"from"`
	} `json:"format"`
	Account struct {
		ID   string              `json:"id"`
		From explain.AccountFrom `json:"from"`
	} `json:"account"`
	Facts       []factView             `json:"facts"`
	Connections []fanout.Connection    `json:"connections"`
	Counts      map[fanout.Outcome]int `json:"connection_counts"`
	Webhooks    []explainedWebhookView `json:"webhooks"`
	Nodes       []nodeView             `json:"nodes"`
	Missing     []string               `json:"nodes_without_answer"`
	Complete    bool                   `json:"complete"`
	At          float64                `json:"at"`
}

type factView struct {
	Name  string           `json:"name"`
	Value json.RawMessage  `json:"value"`
	From  explain.FactFrom `json:"from"`
}

type explainedWebhookView struct {
	ID         string                   `json:"id"`
	AccountID  string                   `json:"account_id"`
	URL        string                   `json:"url"`
	Outcome    webhook.EventOutcome     `json:"outcome"`
	FilteredBy *identity.FilterMismatch `json:"filtered_by,omitempty"`
	Failures   int                      `json:"failures"`
	LastError  string                   `json:"last_error,omitempty"`
	FailedAt   float64                  `json:"failed_at,omitempty"`
	NextTryAt  float64                  `json:"next_try_at,omitempty"`
	PausedAt   float64                  `json:"paused_at,omitempty"`
}

type nodeView struct {
	Node  string  `json:"node"`
	Since float64 `json:"since"` // from this time on the node knows ended connections
}

func viewExplanation(e *explain.Explanation) (v explanationView) {
	v.Event.ID, v.Event.AccountID, v.Event.Message = e.Event.ID, e.Account.ID, e.Event.Message
	v.Event.Position, v.Raw.Position = e.Event.Position.String(), e.Raw.Position
	v.Raw.Available, v.Raw.At, v.Raw.Key, v.Raw.Headers = e.Raw.Available, unixFraction(
		e.Raw.Time), e.Raw.Key, e.Raw.Headers
	v.Format.Name, v.Format.From = e.Format.Name, e.Format.From
	v.Account.ID, v.Account.From = e.Account.ID, e.Account.From
	v.Connections = e.Delivery.Connections
	v.Counts = e.Delivery.Counts
	v.Complete = e.Delivery.Complete
	v.At = unixFraction(e.Explained)

	v.Facts, v.Webhooks, v.Nodes, v.Missing = []factView{}, []explainedWebhookView{}, []nodeView{}, append([]string{},
		e.Delivery.Missing...)
	for _, f := range e.Facts {
		v.Facts = append(v.Facts, factView(f))
	}

	for i := range e.Webhooks {
		w := &e.Webhooks[i]
		v.Webhooks = append(v.Webhooks, explainedWebhookView{
			ID: w.ID, AccountID: w.AccountID, URL: w.URL, Outcome: w.Outcome, FilteredBy: w.FilteredBy,
			Failures: w.Failures, LastError: w.LastError,
			FailedAt: unixFraction(w.FailedAt), NextTryAt: unixFraction(w.NextTryAt),
			PausedAt: unixFraction(w.PausedAt),
		})
	}

	for _, n := range e.Delivery.Nodes {
		v.Nodes = append(v.Nodes, nodeView{n.Node, n.Since})
	}

	return v
}

// hideContents removes what the event tells: its message, its facts but the name, and the
// key of its raw record.
func (v *explanationView) hideContents() {
	v.Event.Message, v.Raw.Key = json.RawMessage("{}"), ""
	v.Facts = slices.DeleteFunc(v.Facts, func(f factView) bool { return f.Name != "name" })
}

// unixFraction returns Unix seconds with milliseconds, 0 for the zero time.
func unixFraction(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
