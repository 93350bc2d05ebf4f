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
	Find(ctx context.Context, account string, start, end int64, originationCallID string, visible *report.Visible) (event.CDR, error)
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

type reportRoutes struct {
	reports     Reports
	audit       AuditLog
	visible     visible
	withTimeout func(echo.HandlerFunc) echo.HandlerFunc
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
	if filter.CSV {
		return r.export(c, filter)
	}
	return r.withTimeout(func(c echo.Context) error { return r.respondJSON(c, filter) })(c)
}

func (r reportRoutes) respondJSON(c echo.Context, f cdrindex.Filter) error {
	ctx := c.Request().Context()
	reportRead(c, r.audit, audit.CDRRead, f.Account, fmt.Sprintf("cdrs:%d-%d", f.Start, f.End))
	if f.OriginationCallID != "" {
		row, err := r.reports.Find(ctx, f.Account, f.Start, f.End, f.OriginationCallID, f.Visible)
		return respond(c, http.StatusOK, row, err)
	}
	page, err := r.reports.List(ctx, f)
	return respond(c, http.StatusOK, page, err)
}

// export sends the whole range as CSV, without a time limit, after the audit entry is
// durable.
func (r reportRoutes) export(c echo.Context, f cdrindex.Filter) error {
	ctx := c.Request().Context()
	if err := r.audit.Record(ctx, r.audit.Entry(ctx, audit.CDRExport, f.Account, fmt.Sprintf("cdrs:%d-%d", f.Start, f.End))); err != nil {
		return err
	}
	return respondCSV(c, "cdrs.csv", func(w io.Writer) (bool, error) { return r.reports.WriteCSV(ctx, f, w) })
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
	reports     AbandonedReports
	audit       AuditLog
	visible     visible
	withTimeout func(echo.HandlerFunc) echo.HandlerFunc
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

	ctx, target := c.Request().Context(), fmt.Sprintf("abandoned:%d-%d", filter.Start, filter.End)
	if filter.CSV {
		if err := r.audit.Record(ctx, r.audit.Entry(ctx, audit.CDRExport, account.ID, target)); err != nil {
			return err
		}
		return respondCSV(c, "abandoned.csv", func(w io.Writer) (bool, error) { return r.reports.WriteAbandonedCSV(ctx, filter, w) })
	}
	reportRead(c, r.audit, audit.CDRRead, account.ID, target)
	return r.withTimeout(func(c echo.Context) error {
		page, err := r.reports.ListAbandoned(c.Request().Context(), filter)
		return respond(c, http.StatusOK, page, err)
	})(c)
}

// respondCSV responds with the CSV that write writes, as an attachment with the name file.
func respondCSV(c echo.Context, file string, write func(io.Writer) (wrote bool, err error)) error {
	c.Response().Header().Set("Content-Type", report.CSVType)
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
	wrote, err := write(c.Response())
	if err != nil && !wrote {
		c.Response().Header().Del("Content-Disposition")
	}
	return err
}

type figureRoutes struct {
	reports     FigureReports
	audit       AuditLog
	visible     visible
	withTimeout func(echo.HandlerFunc) echo.HandlerFunc
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
			ctx := c.Request().Context()
			if err := r.audit.Record(ctx, r.audit.Entry(ctx, audit.FiguresExport, account.ID, target)); err != nil {
				return err
			}
			return respondCSV(c, file, func(w io.Writer) (bool, error) { return r.reports.WriteCSV(c.Request().Context(), filter, w) })
		}
		return r.withTimeout(func(c echo.Context) error {
			page, err := r.reports.List(c.Request().Context(), filter)
			return respond(c, http.StatusOK, page, err)
		})(c)
	}
}
