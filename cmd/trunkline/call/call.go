// Package call has the command call, which places a click-to-call and follows it
// to its end.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/cdr"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/internal/retry"
)

const (
	pollInterval  = 250 * time.Millisecond
	recordTimeout = 15 * time.Second // for the call record, after the end of the call
	hangupTimeout = 10 * time.Second // for the end of the call, after Ctrl-C
	stateEnded    = "ended"
	stateBridged  = "bridged"
)

// callProgress is the response of GET /api/v2/calls/{id}.
type callProgress struct {
	ID      string `json:"origination_call_id"`
	State   string `json:"state"`
	Cause   string `json:"cause,omitempty"`
	History []struct {
		State string  `json:"state"`
		At    float64 `json:"at"` // Unix seconds
	} `json:"history"`
}

func (c callProgress) bridged() bool {
	for _, h := range c.History {
		if h.State == stateBridged {
			return true
		}
	}
	return false
}

// Command returns the command call.
func Command(p *cli.Program) *cobra.Command {
	var asJSON bool
	command := savedlogin.WithSession(p, &cobra.Command{
		Use:   "call DESTINATION",
		Short: "Call a number: your phone rings first; follow the call and print its record",
		Long: `Call a number as the user of trunkline login: your phone rings first, then the
destination. States are printed as they come, and the call record after the end.

Ctrl-C ends the call. The exit code is 0 when the two parties were connected,
else 1.`,
		Args: cli.ExactArgs("DESTINATION"),
	}, func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
		return run(cmd.Context(), p, s, args[0], asJSON)
	})

	command.AddCommand(actionCommands(p)...)
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with the progress and the record")
	return command
}

func run(ctx context.Context, p *cli.Program, s *savedlogin.Session, destination string, asJSON bool) error {
	body, err := s.Call(ctx, http.MethodPost, "/ucp/v2/c2c/"+url.PathEscape(destination), http.StatusCreated)
	if err != nil {
		return fmt.Errorf("calling %s: %w", destination, err)
	}

	var placed callProgress
	err = json.Unmarshal(body, &placed)
	if err != nil || placed.ID == "" {
		return errors.New("the response has no origination_call_id: is it a Trunkline server?")
	}

	show := func(callProgress) {}
	if !asJSON {
		show = newStatePrinter(p, placed.ID)
	}

	final, err := follow(ctx, s, placed.ID, show)
	if ctx.Err() != nil {
		// Ctrl-C ends the call, which the user still wants to see ended.
		final, err = hangUp(context.WithoutCancel(ctx), s, placed.ID, show)
	}
	if err != nil {
		return fmt.Errorf("reading the progress of call %s: %w", placed.ID, err)
	}

	record, err := awaitRecord(context.WithoutCancel(ctx), s, final)
	if err != nil {
		return fmt.Errorf("looking up the record of call %s: %w", final.ID, err)
	}

	if err := printEnd(p, final, record, asJSON); err != nil {
		return err
	}
	if !final.bridged() {
		return fmt.Errorf("the call ended with %s before the two parties were connected", final.Cause)
	}

	return nil
}

// newStatePrinter returns a function that prints new states of the call.
func newStatePrinter(p *cli.Program, id string) func(callProgress) {
	fmt.Fprintf(p.Out, "call %s\n", id)
	shown := 0
	return func(c callProgress) {
		for ; shown < len(c.History); shown++ {
			h := c.History[shown]
			line := time.UnixMilli(int64(h.At*1000)).Format("15:04:05.000") + "  " + h.State
			if h.State == stateEnded && c.Cause != "" {
				line += "  " + c.Cause
			}
			fmt.Fprintln(p.Out, cli.Printable(line))
		}
	}
}

// follow polls the progress until the call or ctx has ended. It retries while the server
// restarts.
func follow(ctx context.Context, s *savedlogin.Session, id string, show func(callProgress)) (callProgress, error) {
	for {
		c, err := findCall(ctx, s, id)
		var refusal *cli.HTTPError
		switch {
		case err == nil:
			show(c)
			if c.State == stateEnded {
				return c, nil
			}
		case errors.As(err, &refusal) && refusal.Status < http.StatusInternalServerError:
			return c, err
		}

		if !retry.Sleep(ctx, pollInterval) {
			return c, ctx.Err()
		}
	}
}

func findCall(ctx context.Context, s *savedlogin.Session, id string) (c callProgress, err error) {
	body, err := s.Call(ctx, http.MethodGet, "/api/v2/calls/"+url.PathEscape(id), http.StatusOK)
	if err != nil {
		return c, err
	}

	err = json.Unmarshal(body, &c)
	return c, err
}

// hangUp cancels the call and follows it to its end.
func hangUp(ctx context.Context, s *savedlogin.Session, id string, show func(callProgress)) (callProgress, error) {
	ctx, cancel := context.WithTimeout(ctx, hangupTimeout)
	defer cancel()

	_, err := s.Call(ctx, http.MethodDelete, "/api/v2/calls/"+url.PathEscape(id), http.StatusAccepted)
	var status *cli.HTTPError
	if errors.As(err, &status) && status.Status == http.StatusConflict {
		err = nil // the call has ended meanwhile
	}
	if err != nil {
		return callProgress{}, fmt.Errorf("hanging up: %w", err)
	}

	return follow(ctx, s, id, show)
}

// awaitRecord returns the call record, nil if there is none within recordTimeout.
func awaitRecord(ctx context.Context, s *savedlogin.Session, final callProgress) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()

	began := time.Now()
	if len(final.History) > 0 {
		began = time.Unix(int64(final.History[0].At), 0)
	}

	for {
		record, err := cdr.Find(ctx, s, final.ID, began.Add(-time.Minute), time.Now().Add(time.Minute))
		var status *cli.HTTPError
		if !errors.As(err, &status) || status.Status != http.StatusNotFound {
			if ctx.Err() != nil {
				return nil, nil
			}
			return record, err
		}

		if !retry.Sleep(ctx, pollInterval) {
			return nil, nil
		}
	}
}

func printEnd(p *cli.Program, final callProgress, record json.RawMessage, asJSON bool) error {
	if asJSON {
		return cli.JSONLine(p.Out, struct {
			callProgress
			Record json.RawMessage `json:"record,omitempty"`
		}{final, record})
	}

	if record == nil {
		p.Printf("there is no call record yet; trunkline cdr find %s shows it later", final.ID)
		return nil
	}

	fields, err := cdr.Fields(record)
	if err != nil {
		return err
	}

	width := 0
	for _, f := range fields {
		width = max(width, len(f.Name))
	}

	for _, f := range fields {
		fmt.Fprintln(p.Out, cli.Printable(f.Name+strings.Repeat(" ", width-len(f.Name)+2)+f.Text))
	}

	return nil
}
