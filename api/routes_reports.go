package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/cdrindex"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/report"
	"trunkline/stats/figures"
)

// Reports reads the index of call records.
type Reports interface {
	// Find returns the leg to the destination of the account's call with this origination call id,
	// in a range as in Filter. Before that leg is indexed it returns the loopback leg with the id.
	// visible limits the rows to those that the caller sees; nil: all.
	Find(ctx context.Context, account string, start, end int64, originationCallID string,
		visible *report.Visible) (event.CDR, error)
	// List returns the page of the filter's rows at its start key. Rows that arrive between two
	// pages neither repeat nor hide others; newer ones are not shown.
	List(ctx context.Context, f cdrindex.Filter) (*cdrindex.Page, error)
	// WriteCSV writes the filter's rows as CSV (RFC 4180), newest first, as report.WriteCSV does.
	WriteCSV(ctx context.Context, f cdrindex.Filter, w io.Writer) (wrote bool, err error)
}

// FigureReports computes the figures of queues and agents.
type FigureReports interface {
	// List returns the page of the filter's rows that begins at its start key.
	List(ctx context.Context, f figures.Filter) (*figures.Page, error)
	// WriteCSV writes the filter's rows as CSV (RFC 4180), newest first, as report.WriteCSV does.
	WriteCSV(ctx context.Context, f figures.Filter, w io.Writer) (wrote bool, err error)
}

// reportResponses has what the reports have in common.
type reportResponses struct {
	audit       AuditLog
	visible     visible
	withTimeout func(echo.HandlerFunc) echo.HandlerFunc
}

// respondExport responds with the whole range as the CSV that write writes, without a time limit,
// after the audit entry is durable.
func (r reportResponses) respondExport(c echo.Context, action audit.Action, accountID, target, file string,
	write func(ctx context.Context, w io.Writer) (wrote bool, err error)) error {
	ctx := c.Request().Context()
	if err := r.audit.Record(ctx, r.audit.Entry(ctx, action, accountID, target)); err != nil {
		return err
	}

	c.Response().Header().Set("Content-Type", report.CSVType)
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
	wrote, err := write(ctx, c.Response())
	if err != nil && !wrote {
		c.Response().Header().Del("Content-Disposition")
	}
	return err
}

// respondPage responds with what list returns, within the time limit of requests.
func (r reportResponses) respondPage(c echo.Context, list func(ctx context.Context) (any, error)) error {
	return r.withTimeout(func(c echo.Context) error {
		page, err := list(c.Request().Context())
		return respond(c, http.StatusOK, page, err)
	})(c)
}

type reportRoutes struct {
	reportResponses
	reports Reports
}

func (r reportRoutes) handleCalls(c echo.Context, account identity.Account) error {
	filter, err := cdrindex.ParseFilter(c.QueryParams(), c.Request().Header.Get("Accept"))
	if err != nil {
		return err
	}
	filter.Account = account.ID
	filter.Visible, err = r.visible.of(c, account)
	if err != nil {
		return err
	}
	target := fmt.Sprintf("cdrs:%d-%d", filter.Start, filter.End)
	if filter.CSV {
		return r.respondExport(c, audit.CDRExport, account.ID, target, "cdrs.csv",
			func(ctx context.Context, w io.Writer) (bool, error) {
				return r.reports.WriteCSV(ctx, filter, w)
			})
	}
	return r.respondPage(c, func(ctx context.Context) (any, error) {
		reportRead(c, r.audit, audit.CDRRead, account.ID, target)
		if filter.OriginationCallID != "" {
			return r.reports.Find(ctx, filter.Account, filter.Start, filter.End, filter.OriginationCallID,
				filter.Visible)
		}
		return r.reports.List(ctx, filter)
	})
}

// AbandonedReports reads the callers who hung up.
type AbandonedReports interface {
	// ListAbandoned returns the page of the filter's calls that begins at its start key.
	ListAbandoned(ctx context.Context, f figures.AbandonedFilter) (*figures.AbandonedPage, error)
	// WriteAbandonedCSV writes the filter's calls as CSV (RFC 4180), newest first, as
	// report.WriteCSV does.
	WriteAbandonedCSV(ctx context.Context, f figures.AbandonedFilter, w io.Writer) (wrote bool, err error)
}

type abandonedRoutes struct {
	reportResponses
	reports AbandonedReports
}

// handleList responds with the callers who hung up, as JSON or CSV.
func (r abandonedRoutes) handleList(c echo.Context, account identity.Account) error {
	filter, err := figures.ParseAbandonedFilter(c.QueryParams(), c.Request().Header.Get("Accept"))
	if err != nil {
		return err
	}
	filter.Account = account.ID
	filter.Visible, err = r.visible.of(c, account)
	if err != nil {
		return err
	}

	target := fmt.Sprintf("abandoned:%d-%d", filter.Start, filter.End)
	if filter.CSV {
		return r.respondExport(c, audit.CDRExport, account.ID, target, "abandoned.csv",
			func(ctx context.Context, w io.Writer) (bool, error) {
				return r.reports.WriteAbandonedCSV(ctx, filter, w)
			})
	}
	return r.respondPage(c, func(ctx context.Context) (any, error) {
		reportRead(c, r.audit, audit.CDRRead, account.ID, target)
		return r.reports.ListAbandoned(ctx, filter)
	})
}

type figureRoutes struct {
	reportResponses
	reports FigureReports
}

// report responds with the figures of one kind, in intervals of the account's time zone.
func (r figureRoutes) report(kind figures.Kind, file string) func(echo.Context, identity.Account) error {
	return func(c echo.Context, account identity.Account) error {
		filter, err := figures.ParseFilter(kind, c.QueryParams(), c.Request().Header.Get("Accept"))
		if err != nil {
			return err
		}
		filter.Account, filter.Location = account.ID, account.Location()
		filter.Visible, err = r.visible.of(c, account)
		if err != nil {
			return err
		}
		if filter.CSV {
			target := fmt.Sprintf("%s:%d-%d", strings.TrimSuffix(file, ".csv"), filter.Start, filter.End)
			return r.respondExport(c, audit.FiguresExport, account.ID, target, file,
				func(ctx context.Context, w io.Writer) (bool, error) {
					return r.reports.WriteCSV(ctx, filter, w)
				})
		}
		return r.respondPage(c, func(ctx context.Context) (any, error) { return r.reports.List(ctx, filter) })
	}
}
