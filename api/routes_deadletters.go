package api

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/deadletter"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

const deadLettersPath = "/api/v2/dead_letters"

// deadLetterRoutes are for administrators and API keys with the scope admin.
type deadLetterRoutes struct {
	letters *deadletter.AccountLetters
	audit   AuditLog
	auth    auth
}

func (r deadLetterRoutes) routes() []route {
	const item = deadLettersPath + "/:position"
	return []route{
		{method: http.MethodGet, path: deadLettersPath,
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleList), scope: identity.ScopeAdmin,
			query: append([]string{"topic", "kind"}, searchParams...)},
		{method: http.MethodPost, path: deadLettersPath + "/retry",
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleRetryAll), scope: identity.ScopeAdmin},
		{method: http.MethodGet, path: item, handle: authorized(r.auth.authenticateAccountAdmin, r.handleGet),
			scope: identity.ScopeAdmin},
		{method: http.MethodDelete, path: item,
			handle: authorized(r.auth.authenticateAccountAdmin,
				r.settle(deadletter.Discarded, audit.DeadLetterDiscard)), scope: identity.ScopeAdmin},
		{method: http.MethodPost, path: item + "/retry",
			handle: authorized(r.auth.authenticateAccountAdmin, r.settle(deadletter.Retried, audit.DeadLetterRetry)),
			scope:  identity.ScopeAdmin},
	}
}

// deadLetterPage is a page of letters, the newest first, with the numbers of all.
type deadLetterPage struct {
	*report.Page[deadletter.Row]
	Total    int            `json:"total"`
	Kinds    map[string]int `json:"kinds"`
	Complete bool           `json:"complete"` // false: there may be older ones
}

func (r deadLetterRoutes) handleList(c echo.Context, account identity.Account) error {
	q := report.NewQuery(c.QueryParams())
	filter := deadletter.Filter{Topic: q.Get("topic"), Kind: q.Get("kind")}
	if err := q.Err(); err != nil {
		return err
	}

	list, err := r.letters.ListDeadLetters(c.Request().Context(), account.ID, filter)
	if err != nil {
		return err
	}

	newestFirst := func(row deadletter.Row) string {
		return fmt.Sprintf("%020d.%s", math.MaxInt64-row.At.UnixMilli(), row.Position)
	}
	texts := func(row deadletter.Row) []string { return []string{row.Topic, row.Kind, row.Reason} }
	page, err := pageOf(c, list.Rows, newestFirst, texts, func(row deadletter.Row) deadletter.Row { return row })

	return respond(c, http.StatusOK, deadLetterPage{page, list.Total, list.Kinds, list.Complete}, err)
}

func (r deadLetterRoutes) handleGet(c echo.Context, account identity.Account) error {
	position, err := deadLetterPosition(c)
	if err != nil {
		return err
	}

	ctx := c.Request().Context()
	row, err := r.letters.FindDeadLetter(ctx, account.ID, position)
	if err != nil {
		return err
	}

	// The entry is stored before the letter is sent.
	return respond(c, http.StatusOK, row,
		r.audit.Record(ctx, r.audit.Entry(ctx, audit.DeadLetterRead, account.ID, deadLetterTarget(position.String()))))
}

func (r deadLetterRoutes) settle(outcome deadletter.Outcome,
	action audit.Action) func(echo.Context, identity.Account) error {
	return func(c echo.Context, account identity.Account) error {
		position, err := deadLetterPosition(c)
		if err != nil {
			return err
		}

		ctx := c.Request().Context()
		entry := r.audit.Entry(ctx, action, account.ID, deadLetterTarget(position.String()))
		return noContent(c, r.audit.Act(ctx, &entry, func() error {
			return r.letters.SettleDeadLetter(ctx, account.ID, outcome, position)
		}))
	}
}

func (r deadLetterRoutes) handleRetryAll(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	filter := deadletter.Filter{Topic: body.String("topic", optional), Kind: body.String("kind", optional)}
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	ctx := c.Request().Context()
	entry := r.audit.Entry(ctx, audit.DeadLetterRetry, account.ID, "")

	var sent int
	var stopped error
	err = r.audit.Act(ctx, &entry, func() error {
		sent, stopped = r.letters.RetryDeadLetters(ctx, account.ID, filter)
		entry.Target = deadLetterTarget(strconv.Itoa(sent))
		if sent > 0 {
			return nil // those before an error were sent
		}
		return stopped
	})

	return respond(c, http.StatusOK, struct {
		Sent int `json:"sent"`
	}{sent}, cmp.Or(err, stopped))
}

func deadLetterTarget(what string) string { return "dead_letter:" + what }

func deadLetterPosition(c echo.Context) (event.Position, error) {
	// another path, which has no other method
	if c.Param("position") == "retry" && c.Request().Method != http.MethodPost {
		c.Response().Header().Set(echo.HeaderAllow, http.MethodPost)
		return event.Position{}, echo.ErrMethodNotAllowed
	}

	position, err := event.ParsePosition(c.Param("position"))
	if err == nil && position.Generation > 0 { // one letter has one name, also in the audit log
		err = errors.New("want partition:offset")
	}
	if err != nil {
		return position, fault.InvalidField("position", "invalid", "position: "+err.Error())
	}

	return position, nil
}
