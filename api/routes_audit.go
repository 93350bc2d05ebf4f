package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/internal/fault"
)

// AuditLog records what callers do, and lists it.
type AuditLog interface {
	Entry(ctx context.Context, action audit.Action, accountID, target string) audit.Entry
	Record(ctx context.Context, entries ...audit.Entry) error
	List(ctx context.Context, f audit.Filter) (*audit.Page, error)
}

type auditRoutes struct {
	audit AuditLog
	auth  auth
}

// list returns a page of the account's entries to its administrators.
func (r auditRoutes) list(c echo.Context) error {
	caller, err := r.auth.authenticateAny(c)
	if err != nil {
		return err
	}
	account, err := r.auth.namedOrOwnAccount(c, caller)
	if err != nil {
		return err
	}
	if err := requireAdmin(caller); err != nil {
		return err
	}
	filter, err := parseAuditFilter(c.QueryParams())
	if err != nil {
		return err
	}
	filter.AccountID = account.ID
	page, err := r.audit.List(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, page)
}

const (
	maxAuditRange = 400 * 24 * 60 * 60 // seconds, as of call records
	endOfTime     = 253_402_300_799    // the last second of year 9999
)

// parseAuditFilter reads the query. Its error names every parameter that is wrong.
func parseAuditFilter(values url.Values) (audit.Filter, error) {
	var faults []fault.Field
	add := func(name, code, message string) {
		faults = append(faults, fault.Field{Field: name, Code: code, Message: message})
	}
	get := func(name string) string {
		if given := values[name]; len(given) > 1 {
			add(name, "invalid", "must be given once")
		} else if len(given) == 1 && given[0] == "" {
			add(name, "required", "must not be empty")
		}
		return values.Get(name)
	}
	seconds := func(name string) int64 {
		text := get(name)
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case !values.Has(name):
			add(name, "required", "is required")
		case text == "":
		case err != nil:
			add(name, "wrong_type", "must be Unix seconds, a whole number")
		case n < 0 || n > endOfTime:
			add(name, "out_of_range", "must be Unix seconds, of a year up to 9999")
		}
		return n
	}
	f := audit.Filter{
		Start: seconds("startDate"), End: seconds("endDate"), Actor: get("actor"), Action: audit.Action(get("action")),
		PageSize: audit.DefaultPage, StartKey: get("start_key"),
	}
	if f.Action != "" && !audit.KnownAction(f.Action) {
		add("action", "invalid", "is not an action")
	}
	if text := get("page_size"); text != "" {
		var err error
		if f.PageSize, err = strconv.Atoi(text); err != nil || f.PageSize < 1 || f.PageSize > audit.MaxPage {
			add("page_size", "out_of_range", "must be a whole number from 1 to "+strconv.Itoa(audit.MaxPage))
		}
	}
	switch {
	case len(faults) > 0:
	case f.End < f.Start:
		add("endDate", "out_of_range", "must not be before startDate")
	case f.End-f.Start > maxAuditRange:
		add("endDate", "out_of_range", "must be at most 400 days after startDate")
	}
	if len(faults) > 0 {
		return audit.Filter{}, fault.Invalid("Invalid query", faults...)
	}
	return f, nil
}
