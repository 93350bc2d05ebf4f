package stats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/settings"
	"trunkline/stats"
	"trunkline/stats/figures"
)

// rebuild requests rebuilds of all partitions and follows them. A zero from rebuilds from the
// beginning of the log.
func rebuild(p *cli.Program, ctx context.Context, from time.Time) (err error) {
	s, err := p.Settings()
	if err != nil {
		return err
	}

	db, err := backend.OpenExistingDatabase(ctx, s, p.ToolLog())
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
		var rebuilds []stats.Rebuild
		err := p.WithKafka(ctx, func(_ *settings.Settings, cluster *kafka.Cluster) (err error) {
			partitions, err := cluster.Partitions(ctx, event.TopicEvents)
			if err != nil {
				return err
			}
			rebuilds, err = planRebuilds(ctx, kafka.NewLog(cluster), partitions, from)
			return err
		})
		if err != nil {
			return err
		}

		if err := requests.Create(ctx, rebuilds); err != nil {
			return err
		}
	} else if err := checkSameStart(open, from); err != nil {
		return err
	}

	return follow(p, ctx, requests)
}

// checkSameStart returns an error if an open rebuild begins at another time than from.
func checkSameStart(open []stats.Rebuild, from time.Time) error {
	for _, r := range open {
		if !from.IsZero() && r.From != from.Unix() {
			return fmt.Errorf(
				"a rebuild from %s on is already running: wait for its end, or omit --from to see its progress",
				formatUTC(r.From))
		}
	}
	return nil
}

// planRebuilds returns the rebuilds of all partitions that have events. It refuses a time before the
// first from which the figures can be rebuilt exactly.
func planRebuilds(ctx context.Context, log kafka.Log, partitions int,
	from time.Time) (rebuilds []stats.Rebuild, err error) {
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

		r := stats.Rebuild{ID: id, Partition: partition, From: start.Earliest(), Total: start.End - start.First}
		earliest = max(earliest, r.From)
		if !from.IsZero() {
			r.From = from.Unix()
		}

		rebuilds = append(rebuilds, r)
	}

	switch {
	case len(rebuilds) == 0:
		return nil, errors.New("the topic cc.evt has no events: there is nothing to rebuild")
	case !from.IsZero() && from.Unix() < earliest:
		return nil, fmt.Errorf(
			"the topic cc.evt no longer has all events that figures before %s are computed from: give --from %[1]s or later, or omit --from to rebuild all that can be",
			formatUTC(earliest))
	case earliest > time.Now().Unix():
		return nil, fmt.Errorf(
			"the topic cc.evt no longer has all events that figures before %s are computed from: try again then",
			formatUTC(earliest))
	}

	return rebuilds, nil
}

// noticeAfter is the time after which follow reports that no server has begun.
const noticeAfter = 10 * time.Second

// follow prints the progress of the rebuilds until all have ended.
func follow(p *cli.Program, ctx context.Context, requests *figures.Rebuilds) error {
	progress, began, noticed := p.Progress("events processed"), time.Now(), false
	for {
		list, err := requests.List(ctx)
		if err != nil {
			return err
		}

		var folded, total int64
		open, failed := 0, []string{}
		for _, r := range list {
			folded, total = folded+r.Folded, total+r.Total
			switch r.State {
			case stats.RebuildOpen:
				open++
			case stats.RebuildFailed:
				failed = append(failed, fmt.Sprintf("partition %d: %s", r.Partition, r.Message))
			}
		}

		switch {
		case open > 0:
		case len(failed) > 0:
			return errors.New("figures not rebuilt: " + strings.Join(failed, "; "))
		default:
			_, err := fmt.Fprintf(p.Out, "figures rebuilt from %d events of %d partitions\n", folded, len(list))
			return err
		}

		// Never all of them before the end: Report would print its last line again and again.
		progress.Report(int(folded), int(max(total, folded+1)))
		if folded == 0 && !noticed && time.Since(began) > noticeAfter {
			noticed = true
			p.Printf("no server with the role stats has begun yet; the request stays open until one does")
		}
		if !retry.Sleep(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func formatUTC(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
