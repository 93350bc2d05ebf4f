package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/webhook"
)

// Webhooks stores the accounts' webhooks.
type Webhooks interface {
	WebhookChanges
	// Find returns a webhook of the account.
	Find(ctx context.Context, accountID, id string) (webhook.Webhook, error)
	// List returns the webhooks of the account, the oldest first.
	List(ctx context.Context, accountID string) ([]webhook.Webhook, error)
}

// WebhookChanges changes webhooks.
type WebhookChanges interface {
	// Create creates a webhook of the account, which gets the events from now on. secret is the
	// generated signing secret, "" if the config has one.
	Create(ctx context.Context, accountID string, c webhook.Config) (made webhook.Webhook, secret string, err error)
	// Update replaces the config of a webhook. It keeps the delivery positions, resets the back-off
	// and does not resume a paused webhook. ifMatch is the request's If-Match header, "" for none.
	// Returns fault.KindPrecondition when it does not match.
	Update(ctx context.Context, accountID, id string, c webhook.Config, ifMatch string) (webhook.Webhook, error)
	// Delete deletes a webhook of the account. ifMatch is that of Update.
	Delete(ctx context.Context, accountID, id, ifMatch string) error
	// Retry ends a pause and the back-off of a webhook. The delivery resumes where it stopped or,
	// if since is not 0, with all events that have a later id, including those delivered before.
	// Returns fault.KindGone if since was never in the log or was deleted by retention.
	Retry(ctx context.Context, accountID, id string, since event.ID) (webhook.Webhook, error)
	// Test sends an example event to a webhook's URL, signed and in its format, beside its backlog:
	// neither its positions nor its failures change.
	Test(ctx context.Context, accountID, id string) (webhook.TestResult, error)
}

const webhooksPath = "/api/v2/webhooks"

// webhookRoutes are for administrators and API keys with the scope admin.
type webhookRoutes struct {
	webhooks Webhooks
	auth     auth
}

func (r webhookRoutes) routes() []route {
	const item = webhooksPath + "/:id"
	return []route{
		{method: http.MethodGet, path: webhooksPath, handle: authorized(r.auth.authenticateAccountAdmin, r.handleList),
			also: auditors, scope: identity.ScopeAdmin, query: searchParams},
		{method: http.MethodPost, path: webhooksPath,
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleCreate), scope: identity.ScopeAdmin},
		{method: http.MethodGet, path: item, handle: authorized(r.auth.authenticateAccountAdmin, r.handleGet),
			also: auditors, scope: identity.ScopeAdmin},
		{method: http.MethodPut, path: item, handle: authorized(r.auth.authenticateAccountAdmin, r.handleUpdate),
			scope: identity.ScopeAdmin},
		{method: http.MethodDelete, path: item, handle: authorized(r.auth.authenticateAccountAdmin, r.handleDelete),
			scope: identity.ScopeAdmin},
		{method: http.MethodPost, path: item + "/retry",
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleRetry), scope: identity.ScopeAdmin},
		{method: http.MethodPost, path: item + "/test",
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleTest), scope: identity.ScopeAdmin},
	}
}

// webhookView is the JSON of a webhook in responses. Only the response to its creation has
// a generated secret.
type webhookView struct {
	ID        string          `json:"id"`
	AccountID string          `json:"account_id"`
	URL       string          `json:"url"`
	Filters   identity.Filter `json:"filters"`
	Format    webhook.Format  `json:"format"`
	CreatedAt int64           `json:"created_at"` // Unix seconds, like all times
	UpdatedAt int64           `json:"updated_at"`
	Status    webhook.Status  `json:"status"`
	Failures  int             `json:"failures"`
	LastError string          `json:"last_error,omitempty"`
	FailedAt  int64           `json:"failed_at,omitempty"`
	NextTryAt int64           `json:"next_try_at,omitempty"`
	PausedAt  int64           `json:"paused_at,omitempty"`
	Secret    string          `json:"secret,omitempty"`
}

func viewWebhook(w webhook.Webhook) webhookView {
	return webhookView{ID: w.ID, AccountID: w.AccountID, URL: w.URL, Filters: w.Filters, Format: w.Format,
		CreatedAt: w.CreatedAt.Unix(), UpdatedAt: w.UpdatedAt.Unix(), Status: w.Status, Failures: w.Failures,
		LastError: w.LastError,
		FailedAt:  unixOrZero(w.FailedAt), NextTryAt: unixOrZero(w.NextTryAt), PausedAt: unixOrZero(w.PausedAt)}
}

// unixOrZero returns Unix seconds, 0 for the zero time.
func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func (r webhookRoutes) handleList(c echo.Context, account identity.Account) error {
	webhooks, err := r.webhooks.List(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return writePage(c, webhooks,
		func(w webhook.Webhook) string { return fmt.Sprintf("%020d.%s", w.CreatedAt.UnixMilli(), w.ID) },
		func(w webhook.Webhook) []string { return []string{w.ID, w.URL} }, viewWebhook)
}

func (r webhookRoutes) handleCreate(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	config, err := readWebhook(c, body)
	if err != nil {
		return err
	}

	created, secret, err := r.webhooks.Create(c.Request().Context(), account.ID, config)
	view := viewWebhook(created)
	view.Secret = secret

	return respondCreated(c, webhooksPath+"/"+created.ID, created.ETag(), view, err)
}

func (r webhookRoutes) handleGet(c echo.Context, account identity.Account) error {
	found, err := r.webhooks.Find(c.Request().Context(), account.ID, c.Param("id"))
	if err != nil {
		return err
	}
	// Never 304, because the tag does not change with the state of the delivery.
	c.Response().Header().Set("ETag", found.ETag())
	return writeJSON(c, http.StatusOK, viewWebhook(found))
}

func (r webhookRoutes) handleUpdate(c echo.Context, account identity.Account) error {
	found, err := r.webhooks.Find(c.Request().Context(), account.ID, c.Param("id"))
	if err != nil {
		return err
	}

	body, err := decode(c)
	if err != nil {
		return err
	}

	body.readOnly("id", found.ID)
	body.readOnly("account_id", found.AccountID)
	body.readOnly("created_at", found.CreatedAt.Unix())

	for _, name := range []string{"updated_at", "status", "failures", "last_error", "failed_at", "next_try_at",
		"paused_at"} {
		body.member(name, optional) // the delivery may have changed it since it was read
	}

	config, err := readWebhook(c, body)
	if err != nil {
		return err
	}

	updated, err := r.webhooks.Update(c.Request().Context(), account.ID, c.Param("id"), config,
		c.Request().Header.Get("If-Match"))
	return respondTagged(c, http.StatusOK, updated.ETag(), viewWebhook(updated), err)
}

func (r webhookRoutes) handleDelete(c echo.Context, account identity.Account) error {
	return noContent(c,
		r.webhooks.Delete(c.Request().Context(), account.ID, c.Param("id"), c.Request().Header.Get("If-Match")))
}

// handleRetry accepts a request without a body like one with an empty object.
func (r webhookRoutes) handleRetry(c echo.Context, account identity.Account) error {
	since, err := readSince(c)
	if err != nil {
		return err
	}
	retried, err := r.webhooks.Retry(c.Request().Context(), account.ID, c.Param("id"), since)
	return respond(c, http.StatusOK, viewWebhook(retried), err)
}

// readSince reads the event id of a retry, 0 if there is none.
func readSince(c echo.Context) (event.ID, error) {
	if c.Request().ContentLength == 0 {
		return 0, nil
	}

	body, err := decode(c)
	if err != nil {
		return 0, err
	}

	var since event.ID
	if body.Has("since") {
		since, err = event.ParseID(body.String("since", required))
		if err != nil {
			body.fault("since", "invalid", err.Error())
		}
	}

	return since, body.Err(invalidBody)
}

// readWebhook reads the settable fields of a webhook.
func readWebhook(c echo.Context, body *jsonObject) (webhook.Config, error) {
	config := webhook.Config{
		URL:     body.String("url", required),
		Filters: readFilter(body.Object("filters", optional)),
		Format:  webhook.Format(body.String("format", optional)),
		Secret:  body.String("secret", optional),
	}

	if err := body.Err(webhook.InvalidMessage); err != nil {
		return webhook.Config{}, err
	}

	return config, checkTranscripts(callerOf(c), config.Filters)
}

// checkTranscripts refuses filters with which a webhook would get what a channel token of the key
// that makes it does not show: what was said in calls.
func checkTranscripts(caller *identity.Principal, f identity.Filter) error {
	types, _, _ := event.TypeSetOf(f.EventTypes)
	wants := types&event.OwnTranscript != 0 &&
		event.NamesOf(f.Names)&event.NameBit([]byte(event.NameCallTranscript)) != 0
	if !wants || !caller.IsKey() || slices.Contains(caller.Scopes, identity.ScopeRecordings) {
		return nil
	}
	return fault.Forbidden("Events call.transcript need an API key with the scope recordings: leave them out by names")
}

// handleTest sends an example event. Whatever the receiver does, the test has been made.
func (r webhookRoutes) handleTest(c echo.Context, account identity.Account) error {
	result, err := r.webhooks.Test(c.Request().Context(), account.ID, c.Param("id"))
	return respond(c, http.StatusOK, struct {
		OK         bool   `json:"ok"`
		DurationMS int64  `json:"duration_ms"`
		Error      string `json:"error,omitempty"`
	}{result.OK, result.Duration.Milliseconds(), result.Message}, err)
}

// readFilter reads the filter of a channel login or a webhook.
func readFilter(body *jsonObject) identity.Filter {
	return identity.Filter{
		AccountIDs: body.Strings("account_ids", optional),
		EventTypes: body.Strings("event_types", optional),
		QueueIDs:   body.Strings("queue_ids", optional),
		AgentIDs:   body.Strings("agent_ids", optional),
		CallIDs:    body.Strings("call_ids", optional),
		Names:      body.Strings("names", optional),
	}
}
