package cdr

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/event"
)

const (
	reportsPath   = "/api/v2/reports/cdrs"
	idSearchRange = 400*24*time.Hour - time.Hour // of a look-up by id without --since; the API allows 400 days
	maxPageRows   = 1000
)

// searchFlags holds the flags of find and export.
type searchFlags struct {
	since, until                    string
	from, to, callID, interactionID string
	limit                           int
}

func (q *searchFlags) registerFlags(command *cobra.Command, since string) {
	flags := command.Flags()
	flags.StringVar(&q.since, "since", since, "calls that started since: a duration such as 12h or 3d, or a time")
	flags.StringVar(&q.until, "until", "0s", "calls that started until: a duration before now, or a time")
	flags.StringVar(&q.from, "from", "", "only calls from this number")
	flags.StringVar(&q.to, "to", "", "only calls to this number")
	flags.StringVar(&q.callID, "call", "", "only the leg with this call id")
	flags.StringVar(&q.interactionID, "interaction", "", "only the legs of this interaction")
}

// query returns the URL parameters of a request.
func (q *searchFlags) query(now time.Time) (url.Values, error) {
	since, until, err := q.timeRange(now)
	if err != nil {
		return nil, err
	}

	values := dateParams(since, until)
	for name, value := range map[string]string{"from": q.from, "to": q.to, "call_id": q.callID,
		"interaction_id": q.interactionID} {
		if value != "" {
			values.Set(name, value)
		}
	}

	return values, nil
}

func (q *searchFlags) timeRange(now time.Time) (since, until time.Time, err error) {
	since, err = cli.ParseTime("since", q.since, now)
	if err != nil {
		return since, until, err
	}

	until, err = cli.ParseTime("until", q.until, now)
	if err != nil {
		return since, until, err
	}

	if until.Before(since) {
		return since, until, cli.Usagef("--until is before --since")
	}

	return since, until, nil
}

func dateParams(since, until time.Time) url.Values {
	return url.Values{
		"startDate": {strconv.FormatInt(since.Unix(), 10)}, "endDate": {strconv.FormatInt(until.Unix(), 10)},
	}
}

func cdrFind(p *cli.Program) *cobra.Command {
	var q searchFlags
	var asJSON bool
	command := savedlogin.WithAccount(p, &cobra.Command{
		Use:   "find [ORIGINATION_CALL_ID]",
		Short: "Find call records, newest first, or the one of a call by the id that click to call returned",
		Long: `Find call records as the user of trunkline login, newest first, or the one of a
call by the id that click to call returned.`,
		Args: cli.AtMostOneArg,
	}, func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
		if len(args) == 1 {
			return findOne(cmd, p, s, args[0], q, asJSON)
		}
		return findPages(cmd.Context(), p, s, q, asJSON)
	})

	q.registerFlags(command, "24h")
	command.Flags().IntVar(&q.limit, "limit", 50, "maximum number of records; 0: all")
	command.Flags().BoolVar(&asJSON, "json", false, "print each record as a JSON object on a line")

	return command
}

func findOne(cmd *cobra.Command, p *cli.Program, s *savedlogin.Session, id string, q searchFlags, asJSON bool) error {
	now := time.Now()
	since, until := now.Add(-idSearchRange), now.Add(time.Hour)
	if cmd.Flags().Changed("since") || cmd.Flags().Changed("until") {
		var err error
		since, until, err = q.timeRange(now)
		if err != nil {
			return err
		}
	}

	row, err := Find(cmd.Context(), s, id, since, until)
	if err != nil {
		return fmt.Errorf("finding the record of call %s: %w", id, err)
	}

	if asJSON {
		return printJSON(p, []json.RawMessage{row})
	}

	return printTable(p, []json.RawMessage{row})
}

// Find returns the record of the call with the id that click to call returned. A 404 is a
// *cli.HTTPError.
func Find(ctx context.Context, s *savedlogin.Session, originationCallID string,
	since, until time.Time) (json.RawMessage, error) {
	values := dateParams(since, until)
	values.Set("origination_call_id", originationCallID)
	return s.Call(ctx, http.MethodGet, reportsPath+"?"+values.Encode(), http.StatusOK)
}

func findPages(ctx context.Context, p *cli.Program, s *savedlogin.Session, q searchFlags, asJSON bool) error {
	values, err := q.query(time.Now())
	if err != nil {
		return err
	}

	if q.limit < 0 {
		return cli.Usagef("--limit is a count, or 0 for all")
	}

	var rows []json.RawMessage // for the table, whose column widths depend on all rows
	for found := 0; ; {
		size := maxPageRows
		if q.limit > 0 {
			size = min(size, q.limit-found)
		}

		values.Set("page_size", strconv.Itoa(size))
		body, err := s.Call(ctx, http.MethodGet, reportsPath+"?"+values.Encode(), http.StatusOK)
		if err != nil {
			return fmt.Errorf("finding call records: %w", err)
		}

		var page struct {
			Data []json.RawMessage `json:"data"`
			Next string            `json:"next_start_key"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("reading a page of call records: %w", err)
		}

		found += len(page.Data)
		if !asJSON {
			rows = append(rows, page.Data...)
		} else if err := printJSON(p, page.Data); err != nil {
			return err
		}

		if page.Next == "" || q.limit > 0 && found >= q.limit {
			break
		}

		values.Set("start_key", page.Next)
	}

	if asJSON {
		return nil
	}

	return printTable(p, rows)
}

// Field is one printed field of a record.
type Field struct{ Name, Text string }

// Fields returns the fields that a record has, in the order of the row.
func Fields(record json.RawMessage) ([]Field, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(record, &values); err != nil {
		return nil, fmt.Errorf("reading a call record: %w", err)
	}

	var fields []Field
	for _, f := range event.CDRFields() {
		value, ok := values[f.Name]
		if !ok {
			continue
		}

		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}

		if f.Kind == event.CDRTime {
			seconds, err := strconv.ParseInt(text, 10, 64)
			if err == nil {
				text = time.Unix(seconds, 0).Format(time.DateTime)
			}
		}

		fields = append(fields, Field{f.Name, text})
	}

	return fields, nil
}

// columns are the fields of the table.
var columns = []struct{ header, field string }{
	{"START", "timestamp"}, {"DIRECTION", "direction"}, {"FROM", "from"}, {"TO", "to"}, {"SECONDS", "duration_seconds"},
	{"BILLED", "billing_seconds"}, {"CAUSE", "hangup_cause"}, {"CALL", "call_id"},
	{"ORIGINATION", "origination_call_id"},
}

func printJSON(p *cli.Program, records []json.RawMessage) error {
	for _, record := range records {
		if err := cli.JSONLine(p.Out, record); err != nil {
			return err
		}
	}
	return nil
}

func printTable(p *cli.Program, records []json.RawMessage) error {
	header := make([]string, len(columns))
	for i, c := range columns {
		header[i] = c.header
	}

	rows := make([][]string, 0, len(records))
	for _, record := range records {
		fields, err := Fields(record)
		if err != nil {
			return err
		}

		texts := map[string]string{}
		for _, f := range fields {
			texts[f.Name] = f.Text
		}

		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = cli.OrDash(cli.Printable(texts[c.field]))
		}

		rows = append(rows, row)
	}

	return cli.Table(p.Out, header, rows)
}
