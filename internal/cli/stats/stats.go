// Package stats has the commands on the figures of queues and agents.
package stats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/config/settings"
	"trunkline/event"
	"trunkline/internal/cli"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/stats"
	"trunkline/stats/figures"
)

func Command(p *cli.Program) *cobra.Command {
	return cli.Group("stats", "The figures of queues and agents", statsRebuild(p))
}

func statsRebuild(p *cli.Program) *cobra.Command {
	var from string
	command := &cobra.Command{
		Use:   "rebuild",
		Short: "Recompute the figures from the events in Kafka",
		Long: `Recompute the figures from the events on cc.evt, and replace those that differ, in servers with
the role stats, which continue meanwhile. Figures of intervals that began before --from, or whose
events Kafka no longer holds, stay as they are. The command shows the progress; when it is ended
the servers continue, and it shows the progress again when it is restarted.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var at time.Time
			if from != "" {
				var err error
				if at, err = cli.ParseTime("from", from, time.Now()); err != nil {
					return err
				}
			}
			return rebuild(p, cmd.Context(), at)
		},
	}
	command.Flags().StringVar(&from, "from", "", "only intervals that begin at this time or later: a duration before now, a time, or Unix seconds")
	return command
}

// rebuild requests rebuilds of all partitions and follows them. A zero from rebuilds from the
// beginning of the log.
func rebuild(p *cli.Program, ctx context.Context, from time.Time) (err error) {
	s, err := p.Settings()
	if err != nil {
		return err
	}
	db, err := backend.ExistingDatabase(ctx, s, p.ToolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	store, err := figures.New(ctx, s.Stats.Retention, db, prometheus.NewRegistry(), p.ToolLog())
	if err != nil {
		return err
	}
	requests := store.Rebuilds()
	open, err := requests.ListOpen(ctx)
	if err != nil {
		return err
	}
	if len(open) == 0 {
		var wanted []stats.Rebuild
		err := p.WithKafka(ctx, func(_ *settings.Settings, cluster *kafka.Cluster) (err error) {
			partitions, err := cluster.Partitions(ctx, event.TopicEvents)
			if err != nil {
				return err
			}
			wanted, err = plan(ctx, stats.NewKafkaLog(cluster), partitions, from)
			return err
		})
		if err != nil {
			return err
		}
		if err := requests.Create(ctx, wanted); err != nil {
			return err
		}
	} else if err := sameFrom(open, from); err != nil {
		return err
	}
	return follow(p, ctx, requests)
}

// sameFrom returns an error if the open rebuilds begin at another time.
func sameFrom(open []stats.Rebuild, from time.Time) error {
	for _, one := range open {
		if !from.IsZero() && one.From != from.Unix() {
			return fmt.Errorf("figures from %s on are folded again already: wait for the end, or leave out --from to see the progress", utc(one.From))
		}
	}
	return nil
}

// plan returns the rebuilds of all partitions that have events. It refuses a time before the
// first from which the figures can be rebuilt exactly.
func plan(ctx context.Context, log stats.Log, partitions int, from time.Time) (wanted []stats.Rebuild, err error) {
	id := uuid.NewString()
	var earliest int64
	for partition := range partitions {
		start, err := stats.FindLogStart(ctx, log, partition)
		if err != nil {
			return nil, err
		}
		if start.Time.IsZero() {
			continue
		}
		one := stats.Rebuild{ID: id, Partition: partition, From: start.Earliest(), Total: start.Next - start.First}
		if earliest = max(earliest, one.From); !from.IsZero() {
			one.From = from.Unix()
		}
		wanted = append(wanted, one)
	}
	switch {
	case len(wanted) == 0:
		return nil, errors.New("the topic cc.evt has no events: there is nothing to fold")
	case !from.IsZero() && from.Unix() < earliest:
		return nil, fmt.Errorf("the topic cc.evt no longer has all events that figures before %s are made from: give --from %[1]s or later, or none for all that can be folded", utc(earliest))
	case earliest > time.Now().Unix():
		return nil, fmt.Errorf("the topic cc.evt no longer has all events that figures before %s are made from: try again then", utc(earliest))
	}
	return wanted, nil
}

// noticeAfter is the time after which follow reports that no server has begun.
const noticeAfter = 10 * time.Second

// follow prints the progress of the rebuilds until all have ended.
func follow(p *cli.Program, ctx context.Context, requests *figures.Rebuilds) error {
	progress, began, noticed := p.Progress("events folded"), time.Now(), false
	for {
		list, err := requests.List(ctx)
		if err != nil {
			return err
		}
		var folded, total int64
		open, failed := 0, []string{}
		for _, one := range list {
			folded, total = folded+one.Folded, total+one.Total
			switch one.State {
			case stats.RebuildOpen:
				open++
			case stats.RebuildFailed:
				failed = append(failed, fmt.Sprintf("partition %d: %s", one.Partition, one.Message))
			}
		}
		switch {
		case open > 0:
		case len(failed) > 0:
			return errors.New("figures not folded again: " + strings.Join(failed, "; "))
		default:
			_, err := fmt.Fprintf(p.Out, "%d events of %d partitions folded again\n", folded, len(list))
			return err
		}
		progress.Report(int(folded), int(max(total, folded+1)))
		if folded == 0 && !noticed && time.Since(began) > noticeAfter {
			noticed = true
			p.Printf("no server with the role stats has begun yet; the request stays until one does")
		}
		if !retry.Sleep(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func utc(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
