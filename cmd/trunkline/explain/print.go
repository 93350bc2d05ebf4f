package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/fanout"
	"trunkline/identity"
)

// explanation holds the members of the response that the table shows.
type explanation struct {
	Event struct {
		ID        string `json:"id"`
		AccountID string `json:"account_id"`
		Position  string `json:"position"`
		Message   struct {
			Type string `json:"type"`
		} `json:"message"`
	} `json:"event"`
	Raw struct {
		Position  string            `json:"position"`
		Available bool              `json:"available"`
		At        float64           `json:"at"`
		Key       string            `json:"key"`
		Headers   map[string]string `json:"headers"`
	} `json:"raw"`
	Format  origin `json:"format"`
	Account origin `json:"account"`
	Facts   []struct {
		origin
		Value json.RawMessage `json:"value"`
	} `json:"facts"`
	Connections []fanout.Connection `json:"connections"`
	Counts      map[string]int      `json:"connection_counts"`
	Webhooks    []webhook           `json:"webhooks"`
	Missing     []string            `json:"nodes_without_answer"`
	Complete    bool                `json:"complete"`
}

type origin struct {
	Name string `json:"name"`
	From string `json:"from"`
}

type webhook struct {
	ID         string                   `json:"id"`
	URL        string                   `json:"url"`
	Outcome    string                   `json:"outcome"`
	FilteredBy *identity.FilterMismatch `json:"filtered_by"`
	Failures   int                      `json:"failures"`
	LastError  string                   `json:"last_error"`
	NextTryAt  float64                  `json:"next_try_at"`
}

func (e *explanation) print(p *cli.Program, r explainFlags) error {
	for _, line := range e.sourceLines() {
		fmt.Fprintln(p.Out, cli.Printable(line))
	}

	var rows [][]string
	hidden := 0
	for i := range e.Connections {
		c := &e.Connections[i]
		// Most connections of a server with many tenants are these.
		if c.Outcome == fanout.OutcomeNotVisible && !r.all && r.client == "" && r.user == "" {
			hidden++
			continue
		}

		rows = append(rows,
			printableCells(c.ID, cli.OrDash(cmp.Or(c.Username, c.UserID, c.KeyID)), c.AccountID, c.Node,
				formatSeconds(c.ConnectedAt), string(c.Outcome), connectionReason(c)))
	}

	if len(rows) > 0 {
		fmt.Fprintln(p.Out)
		if err := cli.Table(p.Out, []string{"CONNECTION", "USER", "ACCOUNT", "NODE", "CONNECTED", "OUTCOME", "WHY"},
			rows); err != nil {
			return err
		}
	}

	if len(e.Webhooks) > 0 {
		rows = nil
		for i := range e.Webhooks {
			w := &e.Webhooks[i]
			rows = append(rows, printableCells(w.ID, w.URL, w.Outcome, w.reason()))
		}

		fmt.Fprintln(p.Out)
		if err := cli.Table(p.Out, []string{"WEBHOOK", "URL", "OUTCOME", "WHY"}, rows); err != nil {
			return err
		}
	}

	e.printNotes(p, hidden)
	return nil
}

// printNotes writes the counts and the missing nodes to stderr.
func (e *explanation) printNotes(p *cli.Program, hidden int) {
	total := 0
	for _, n := range e.Counts {
		total += n
	}

	switch {
	case total == 0:
		p.Printf("no connection: none is open, and no node remembers one that has ended")
	case total > len(e.Connections):
		p.Printf("%d of %d connections are listed; filter them with --client or --user", len(e.Connections), total)
	}

	if hidden > 0 {
		p.Printf("%d connections have no access to account %s; --all lists them", hidden, e.Event.AccountID)
	}
	if !e.Complete {
		p.Printf("not all nodes have answered: %s", cli.OrDash(strings.Join(e.Missing, ", ")))
	}
}

// sourceLines describes the raw record of the event, a line for each part.
func (e *explanation) sourceLines() []string {
	raw := "deleted, or the log was cut"
	if e.Raw.Available {
		raw = "received " + formatMillis(e.Raw.At) + ", key " + cli.OrDash(e.Raw.Key) + ", source " +
			cli.OrDash(e.Raw.Headers["source"])
	}

	lines := []string{
		fmt.Sprintf("event    %s  %s, cc.evt %s", e.Event.ID, e.Event.Message.Type, e.Event.Position),
		fmt.Sprintf("raw      cc.raw %s, %s", cli.OrDash(e.Raw.Position), raw),
		fmt.Sprintf("format   %s, from %s", e.Format.Name, e.Format.From),
		fmt.Sprintf("account  %s, from %s", e.Event.AccountID, e.Account.From),
	}

	for i, f := range e.Facts {
		label := "facts    "
		if i > 0 {
			label = "         "
		}

		var text string
		if json.Unmarshal(f.Value, &text) != nil {
			text = string(f.Value)
		}

		lines = append(lines, label+f.Name+"="+text+", from "+f.From)
	}

	return lines
}

// connectionReason returns the reasons for the outcome at a connection.
func connectionReason(c *fanout.Connection) string {
	last := ""
	if c.LastEventID != 0 {
		last = ", last event " + c.LastEventID.String()
	}

	ended := fmt.Sprintf("ended %s with %d %s%s", formatMillis(c.EndedAt), c.Code, c.Reason, last)
	switch c.Outcome {
	case fanout.OutcomeFiltered:
		return mismatchText(c.FilteredBy)
	case fanout.OutcomeNotVisible:
		return "its user sees account " + c.AccountID + " and those below"
	case fanout.OutcomeConnectedLater:
		return "it began after the event, without since"
	case fanout.OutcomeResumedLater:
		return "resumed after " + c.ResumedFrom
	case fanout.OutcomeRefused:
		return fmt.Sprintf("resume after %s refused with %d at %s: %s", c.ResumedFrom, c.Code, formatMillis(c.EndedAt),
			c.Reason)
	case fanout.OutcomeDropped:
		return "it waited in the queue; " + ended
	case fanout.OutcomeDisconnected:
		return ended
	}

	var parts []string
	if c.ResumedFrom != "" {
		parts = append(parts, "resumed after "+c.ResumedFrom)
	}
	if c.QueuedAt != 0 {
		parts = append(parts, "queued "+formatMillis(c.QueuedAt))
	}
	if c.EndedAt != 0 {
		parts = append(parts, ended)
	}

	return cli.OrDash(strings.Join(parts, "; "))
}

func (w *webhook) reason() string {
	switch {
	case w.FilteredBy != nil:
		return mismatchText(w.FilteredBy)
	case w.Failures > 0 && w.NextTryAt > 0:
		return fmt.Sprintf("%d failures, next try %s: %s", w.Failures, formatMillis(w.NextTryAt), w.LastError)
	case w.Failures > 0:
		return fmt.Sprintf("%d failures: %s", w.Failures, w.LastError)
	}
	return "-"
}

func mismatchText(r *identity.FilterMismatch) string {
	if r == nil {
		return "-"
	}
	if r.Count == 0 {
		return r.Field + " does not select it"
	}

	more := ""
	if r.Count > len(r.Admits) {
		more = fmt.Sprintf(" and %d more", r.Count-len(r.Admits))
	}

	return r.Field + " is " + strings.Join(r.Admits, ", ") + more
}

func printableCells(texts ...string) []string {
	for i := range texts {
		texts[i] = cli.Printable(texts[i])
	}
	return texts
}

func formatMillis(seconds float64) string { return toTime(seconds).Format("2006-01-02 15:04:05.000") }

func formatSeconds(seconds float64) string { return toTime(seconds).Format(time.DateTime) }

func toTime(seconds float64) time.Time { return time.UnixMilli(int64(seconds*1000 + 0.5)) }
