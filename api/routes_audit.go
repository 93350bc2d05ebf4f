package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/report"
)

// AuditLog records the actions of callers and lists them.
type AuditLog interface {
	// Entry returns an entry with the context's caller, the current time and audit.OutcomeOK. It is not
	// stored.
	Entry(ctx context.Context, action audit.Action, accountID, target string) audit.Entry
	// Record stores entries and returns when they are durable. If it returns an error, the caller
	// must not perform the action. Entries of many callers are stored together.
	Record(ctx context.Context, entries ...audit.Entry) error
	// Act runs act and then stores the entry, of which act may set fields. Returns the error of act,
	// and before it fault.KindLimited for an actor with too many entries.
	Act(ctx context.Context, entry *audit.Entry, act func() error) error
	// ReportOnce records an entry of a refused request, at most once a minute for a caller, address and
	// route. It does not wait until the entry is stored.
	ReportOnce(ctx context.Context, e audit.Entry)
	// List returns a page of the chain's entries. Entries are in the chain about 0.1 s after they
	// are recorded.
	List(ctx context.Context, f audit.Filter) (*audit.Page, error)
}

type auditRoutes struct{ audit AuditLog }

// handleList returns a page of the account's entries to its administrators.
func (r auditRoutes) handleList(c echo.Context, account identity.Account) error {
	filter, err := parseAuditFilter(c.QueryParams())
	if err != nil {
		return err
	}
	filter.AccountID = account.ID
	reportRead(c, r.audit, audit.AuditRead, account.ID, fmt.Sprintf("audit:%d-%d", filter.Start, filter.End))
	page, err := r.audit.List(c.Request().Context(), filter)
	return respond(c, http.StatusOK, page, err)
}

// reportRead writes to the audit log that the caller reads the target, once a minute.
func reportRead(c echo.Context, log AuditLog, action audit.Action, accountID, target string) {
	ctx := c.Request().Context()
	log.ReportOnce(ctx, log.Entry(ctx, action, accountID, target))
}

// parseAuditFilter parses the query. Its error names every invalid parameter.
func parseAuditFilter(values url.Values) (audit.Filter, error) {
	q := report.NewQuery(values)
	f := audit.Filter{Actor: q.Get("actor"), Action: audit.Action(q.Get("action")), PageSize: q.PageSize(),
		StartKey: q.Get("start_key")}
	f.Start, f.End = q.Range()

	if f.Action != "" && !audit.KnownAction(f.Action) {
		q.AddFault("action", "invalid", "is not an action")
	}
	if err := q.Err(); err != nil {
		return audit.Filter{}, err
	}

	return f, nil
}
