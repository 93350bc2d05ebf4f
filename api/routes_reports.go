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
	"trunkline/internal/report"
	"trunkline/stats/figures"
)

// Reports reads the index of call records.
type Reports interface {
	Find(ctx context.Context, account string, start, end int64, originationCallID string) (event.CDR, error)
	List(ctx context.Context, f cdrindex.Filter) (*cdrindex.Page, error)
	WriteCSV(ctx context.Context, f cdrindex.Filter, w io.Writer) (wrote bool, err error)
}

// FigureReports adds up the figures of queues and agents.
type FigureReports interface {
	List(ctx context.Context, f figures.Filter) (*figures.Page, error)
	WriteCSV(ctx context.Context, f figures.Filter, w io.Writer) (wrote bool, err error)
}

type reportRoutes struct {
	reports Reports
	audit   AuditLog
	auth    auth
	timed   func(echo.HandlerFunc) echo.HandlerFunc
}

func (r reportRoutes) calls(c echo.Context) error {
	_, account, err := r.auth.callerAndAccount(c)
	if err != nil {
		return err
	}
	filter, err := cdrindex.ParseFilter(c.QueryParams(), c.Request().Header.Get("Accept"))
	if err != nil {
		return err
	}
	filter.Account = account.ID
	if filter.CSV {
		return r.export(c, filter)
	}
	return r.timed(func(c echo.Context) error { return r.answer(c, filter) })(c)
}

func (r reportRoutes) answer(c echo.Context, f cdrindex.Filter) error {
	ctx := c.Request().Context()
	if f.OriginationCallID != "" {
		row, err := r.reports.Find(ctx, f.Account, f.Start, f.End, f.OriginationCallID)
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, row)
	}
	page, err := r.reports.List(ctx, f)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, page)
}

// export streams the whole range as CSV, without a time limit, once the audit log
// has it.
func (r reportRoutes) export(c echo.Context, f cdrindex.Filter) error {
	ctx := c.Request().Context()
	if err := r.audit.Record(ctx, r.audit.Entry(ctx, audit.CDRExport, f.Account, fmt.Sprintf("cdrs:%d-%d", f.Start, f.End))); err != nil {
		return err
	}
	return writeCSV(c, "cdrs.csv", func(w io.Writer) (bool, error) { return r.reports.WriteCSV(ctx, f, w) })
}

// writeCSV answers with the CSV that write writes, to be saved as a file.
func writeCSV(c echo.Context, file string, write func(io.Writer) (wrote bool, err error)) error {
	c.Response().Header().Set("Content-Type", report.CSVType)
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
	wrote, err := write(c.Response())
	if err != nil && !wrote {
		c.Response().Header().Del("Content-Disposition")
	}
	return err
}

type figureRoutes struct {
	reports FigureReports
	auth    auth
	timed   func(echo.HandlerFunc) echo.HandlerFunc
}

// report answers with the figures of one kind, in intervals of the account's time
// zone.
func (r figureRoutes) report(kind figures.Kind, file string) echo.HandlerFunc {
	return func(c echo.Context) error {
		_, account, err := r.auth.callerAndAccount(c)
		if err != nil {
			return err
		}
		filter, err := figures.ParseFilter(kind, c.QueryParams(), c.Request().Header.Get("Accept"))
		if err != nil {
			return err
		}
		filter.Account, filter.Location = account.ID, account.Location()
		if filter.CSV {
			return writeCSV(c, file, func(w io.Writer) (bool, error) { return r.reports.WriteCSV(c.Request().Context(), filter, w) })
		}
		return r.timed(func(c echo.Context) error {
			page, err := r.reports.List(c.Request().Context(), filter)
			if err != nil {
				return err
			}
			return writeJSON(c, http.StatusOK, page)
		})(c)
	}
}
