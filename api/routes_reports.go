package api

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/cdrindex"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/report"
	"trunkline/stats/figures"
)

// CallReports reads the index of call records.
type CallReports interface {
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
	visibility  rowVisibility
	withTimeout func(echo.HandlerFunc) echo.HandlerFunc
}

// reportParts are the parts in which the reports differ.
type reportParts struct {
	name           string // of its file, and in the audit log
	read, exported audit.Action
	list           func(ctx context.Context) (any, error)
	write          func(ctx context.Context, w io.Writer) (wrote bool, err error) // the whole range as CSV
}

// respond responds with a report of the filter, which it completes: with a page within the time limit of requests, or
// with CSV without one, after the audit entry is durable.
func (r reportResponses) respond(c echo.Context, account identity.Account, f *report.Filter, parts reportParts) error {
	f.Account = account.ID
	var err error
	f.Visible, err = r.visibility.ofCaller(c, account)
	if err != nil {
		return err
	}

	target := fmt.Sprintf("%s:%d-%d", parts.name, f.Start, f.End)
	if f.CSV {
		return r.respondExport(c, account.ID, target, parts)
	}

	return r.withTimeout(func(c echo.Context) error {
		if parts.read != "" {
			reportRead(c, r.audit, parts.read, account.ID, target)
		}
		page, err := parts.list(c.Request().Context())
		return respond(c, http.StatusOK, page, err)
	})(c)
}

func (r reportResponses) respondExport(c echo.Context, accountID, target string, parts reportParts) error {
	ctx := c.Request().Context()
	if err := r.audit.Record(ctx, r.audit.Entry(ctx, parts.exported, accountID, target)); err != nil {
		return err
	}

	c.Response().Header().Set("Content-Type", report.CSVType)
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+parts.name+`.csv"`)
	wrote, err := parts.write(ctx, c.Response())
	// The response is then an error in JSON, not the file.
	if err != nil && !wrote {
		c.Response().Header().Del("Content-Disposition")
	}

	return err
}

type callReportRoutes struct {
	reportResponses
	reports CallReports
}

func (r callReportRoutes) handleCalls(c echo.Context, account identity.Account) error {
	filter, err := cdrindex.ParseFilter(c.QueryParams(), c.Request().Header.Get("Accept"))
	if err != nil {
		return err
	}

	return r.respond(c, account, &filter.Filter, reportParts{
		name: "cdrs", read: audit.CDRRead, exported: audit.CDRExport,
		list: func(ctx context.Context) (any, error) {
			if filter.OriginationCallID != "" {
				return r.reports.Find(ctx, filter.Account, filter.Start, filter.End, filter.OriginationCallID,
					filter.Visible)
			}
			return r.reports.List(ctx, filter)
		},
		write: func(ctx context.Context, w io.Writer) (bool, error) { return r.reports.WriteCSV(ctx, filter, w) },
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

	return r.respond(c, account, &filter.Filter, reportParts{
		name: "abandoned", read: audit.CDRRead, exported: audit.CDRExport,
		list: func(ctx context.Context) (any, error) { return r.reports.ListAbandoned(ctx, filter) },
		write: func(ctx context.Context, w io.Writer) (bool, error) {
			return r.reports.WriteAbandonedCSV(ctx, filter, w)
		},
	})
}

type figureRoutes struct {
	reportResponses
	reports FigureReports
}

// report responds with the figures of one kind, in intervals of the account's time zone.
func (r figureRoutes) report(kind figures.Kind, name string) func(echo.Context, identity.Account) error {
	return func(c echo.Context, account identity.Account) error {
		filter, err := figures.ParseFilter(kind, c.QueryParams(), c.Request().Header.Get("Accept"))
		if err != nil {
			return err
		}

		filter.Location = account.Location()
		return r.respond(c, account, &filter.Filter, reportParts{
			name: name, exported: audit.FiguresExport,
			list:  func(ctx context.Context) (any, error) { return r.reports.List(ctx, filter) },
			write: func(ctx context.Context, w io.Writer) (bool, error) { return r.reports.WriteCSV(ctx, filter, w) },
		})
	}
}
