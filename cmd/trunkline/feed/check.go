package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app"
	"trunkline/cmd/internal/cli"
	"trunkline/event/state"
	"trunkline/ingest/feed"
)

func check(p *cli.Program) *cobra.Command {
	var wait time.Duration
	command := &cobra.Command{
		Use:   "check NAME",
		Short: "Connect to a feed's platform, and show the subscription, the state and one event",
		Args:  cli.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.WithStores(cmd.Context(), func(stores cli.Stores) error {
				index := slices.IndexFunc(stores.Settings.Feeds, func(c feed.Config) bool { return c.Name == args[0] })
				if index < 0 {
					return cli.Usagef("there is no feed %q in the settings", args[0])
				}
				cfg := stores.Settings.Feeds[index]
				cfg.SyncAccounts = false // a check has no side effects
				platform, err := app.FeedPlatform(stores.Directory)(cfg, feed.Deps{
					Accounts: feed.NewAccounts(cfg, app.FeedDirectory{Identity: stores.Directory}), Metrics: prometheus.NewRegistry(), Log: p.ToolLog(),
				})
				if err != nil {
					return err
				}
				return errors.Join(checkPlatform(cmd.Context(), p.Out, cfg, platform, wait), checkAccounts(cfg, app.FeedDirectory{Identity: stores.Directory}))
			})
		},
	}
	command.Flags().DurationVar(&wait, "wait", 15*time.Second, "how long to wait for the connection, and then for an event")
	return command
}

// checkPlatform connects and prints the subscription, the state and an event. The error of a
// refusal includes the advice.
func checkPlatform(ctx context.Context, out io.Writer, cfg feed.Config, platform feed.Platform, wait time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(wait, cancel)
	session, err := platform.Connect(ctx)
	if err != nil {
		return withAdvice(fmt.Errorf("connecting: %w", err))
	}
	timer.Stop()
	defer func() { err = errors.Join(err, session.Close()) }()
	fmt.Fprintf(out, "%s: connected and logged in\n", cfg.Name)
	fmt.Fprintf(out, "subscription: %s\n", strings.Join(platform.Subscription(), ", "))
	waitCtx, cancelWait := context.WithTimeout(ctx, wait)
	defer cancelWait()
	snapshotDone := make(chan error, 1)
	go func() { snapshotDone <- printSnapshot(waitCtx, out, session) }()
	event, err := firstEvent(waitCtx, session)
	failed := <-snapshotDone
	if failed != nil {
		return withAdvice(failed)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(out, "no event within %v: make a call, or change an agent's status\n", wait)
		return nil
	case err != nil:
		return withAdvice(fmt.Errorf("reading events: %w", err))
	}
	account := event.Account
	if account == "" {
		account = fmt.Sprintf("unknown, of %q: set accounts: [{match: …, account: …}] or account", event.Names)
	}
	fmt.Fprintf(out, "first event: format %s, account %s\n%s\n", event.Format, account, event.Value)
	if cfg.Redundancy > 1 && !event.Identity.Valid() {
		return fmt.Errorf("redundancy: %d needs events that the platform numbers, and this event has no number: set redundancy: 1; one node at a time reads, and a resync corrects missed events", cfg.Redundancy)
	}
	return nil
}

// checkAccounts reports the accounts of the settings that the directory does not have.
func checkAccounts(cfg feed.Config, directory feed.Directory) (err error) {
	names := []string{cfg.Account}
	for _, rule := range cfg.Accounts {
		names = append(names, rule.Account)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, ok := directory.Resolve(name); !ok && name != "" {
			err = errors.Join(err, fmt.Errorf("there is no account %q: its events become dead letters; trunkline account list shows the accounts, "+
				"trunkline account create makes one", name))
		}
	}
	return err
}

func printSnapshot(ctx context.Context, out io.Writer, session feed.Session) error {
	snapshot, err := session.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("reading the platform snapshot: %w", err)
	}
	counts := map[state.Kind]int{}
	for _, object := range snapshot.Objects {
		counts[object.Kind]++
	}
	fmt.Fprintf(out, "state: %d agents, %d calls, %d devices\n", counts[state.Agent], counts[state.Call], counts[state.Device])
	for _, note := range snapshot.Notes {
		fmt.Fprintln(out, "note: "+note)
	}
	return nil
}

func firstEvent(ctx context.Context, session feed.Session) (feed.Event, error) {
	for {
		events, err := session.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return feed.Event{}, err
		}
		for _, e := range events {
			if e.Value != nil {
				e.Value = slices.Clone(e.Value)
				return e, nil
			}
		}
	}
}

// withAdvice adds a refusal's advice to the error's text.
func withAdvice(err error) error {
	if refusal, ok := errors.AsType[*feed.Refusal](err); ok && refusal.Advice != "" {
		return fmt.Errorf("%w\n%s", err, refusal.Advice)
	}
	return err
}
