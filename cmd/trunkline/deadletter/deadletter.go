// Package deadletter has the commands that list dead letters, send them back to their raw topic
// and discard them.
package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"trunkline/app"
	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/deadletter"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

// Command returns the command deadletter with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("deadletter", "The records that could not be normalized", list(p), retry(p), discard(p))
}

// withLetters runs work on the dead letters of the settings' Kafka. The directory is opened only
// where work sends back records of feeds.
func withLetters(ctx context.Context, p *cli.Program, work func(*deadletter.Letters) error) error {
	return p.WithKafka(ctx, func(s *settings.Settings, cluster *kafka.Cluster) (err error) {
		producer := cluster.NewProducer(kafka.ProducerConfig{})
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			err = errors.Join(err, producer.Close(ctx))
		}()

		return work(deadletter.New(deadletter.Deps{
			LogReader: cluster, Producer: producer, Feeds: s.Feeds,
			WithDirectory: func(ctx context.Context, work func(feed.Directory) error) error {
				return p.WithDirectory(ctx,
					func(directory *identity.Directory) error { return work(app.FeedDirectory{Directory: directory}) })
			},
		}))
	})
}

// parsePositions reads the positions that are named in place of --all.
func parsePositions(all bool, args []string) (positions []event.Position, err error) {
	if all == (len(args) > 0) {
		return nil, cli.Usagef("name positions, as deadletter list shows them, or --all")
	}

	for _, arg := range args {
		position, err := event.ParsePosition(arg)
		if err != nil {
			return nil, cli.Usagef("%q is %v", arg, err)
		}
		positions = append(positions, position)
	}

	return positions, nil
}
