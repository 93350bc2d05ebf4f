package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/app"
	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

// retryTopics are the topics that dead letters can be sent back to: those that the normalizer
// reads. Records of the other topics contain its ids and positions, which no other program may
// write.
var retryTopics = []string{event.TopicRaw, event.TopicCDRRaw}

// errorHeaders are the headers that mark a record as a dead letter.
var errorHeaders = []string{
	event.HeaderErrorKind, event.HeaderError,
	event.HeaderOrigTopic, event.HeaderOrigPartition, event.HeaderOrigOffset,
}

func deadletterRetry(p *cli.Program) *cobra.Command {
	var topic string
	var all bool
	command := &cobra.Command{
		Use:   "retry [--topic T] (--all | POSITION…)",
		Short: "Send dead letters back to their original topics",
		Long: `Send dead letters back to their original topics.

With --all, send those that no retry --all has sent yet. With positions, as
deadletter list shows them, send exactly those, even if they were sent before.
Events of feeds whose account was unknown get the account that the feed's rules
and the directory give them at the time of the retry.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, positions, err := parseRetryArgs(topic, all, args)
			if err != nil {
				return err
			}
			return p.WithKafka(cmd.Context(), func(s *settings.Settings, cluster *kafka.Cluster) (err error) {
				r := &retry{
					p: p, cluster: cluster, producer: cluster.NewProducer(kafka.ProducerConfig{}), topics: topics, feeds: s.Feeds,
				}
				defer func() { err = errors.Join(err, r.close()) }()
				if all {
					return r.retryAll(cmd.Context())
				}
				return r.retryPositions(cmd.Context(), positions)
			})
		},
	}
	command.Flags().StringVar(&topic, "topic", "", "only those from this topic: "+strings.Join(retryTopics, " or "))
	command.Flags().BoolVar(&all, "all", false, "all dead letters that were not retried yet")
	return command
}

func parseRetryArgs(topic string, all bool, args []string) (topics []string, positions []event.Position, err error) {
	topics = retryTopics
	if topic != "" {
		topics = []string{topic}
	}
	if !slices.Contains(retryTopics, topics[0]) {
		return nil, nil, cli.Usagef("--topic is %s, not %q", strings.Join(retryTopics, " or "), topic)
	}
	if all == (len(args) > 0) {
		return nil, nil, cli.Usagef("name positions, as deadletter list shows them, or --all")
	}
	for _, arg := range args {
		position, err := event.ParsePosition(arg)
		if err != nil {
			return nil, nil, cli.Usagef("%q is %v", arg, err)
		}
		positions = append(positions, position)
	}
	return topics, positions, nil
}

// retry sends dead letters back.
type retry struct {
	p        *cli.Program
	cluster  *kafka.Cluster
	producer *kafka.Producer
	topics   []string // original topics of the letters to send
	feeds    []feed.Config
}

func (r *retry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return r.producer.Close(ctx)
}

// retryPositions sends exactly the letters at the positions, or none if one does not exist.
func (r *retry) retryPositions(ctx context.Context, positions []event.Position) error {
	records := make([]kafka.Record, 0, len(positions))
	for _, position := range positions {
		l, err := r.find(ctx, position)
		if err != nil {
			return err
		}
		records = append(records, l.originalRecord())
	}
	if err := r.send(ctx, records); err != nil {
		return err
	}
	printSent(r.p, len(records))
	return nil
}

// send sends the original records back. Events of feeds whose account was unknown get the account that they
// have by now; those that have none become dead letters again.
func (r *retry) send(ctx context.Context, records []kafka.Record) error {
	if err := r.findAccounts(ctx, records); err != nil {
		return fmt.Errorf("looking up the accounts of feeds: %w", err)
	}
	if err := r.producer.Produce(ctx, records...); err != nil {
		return fmt.Errorf("sending dead letters back: %w", err)
	}
	return nil
}

// findAccounts sets the keys of feeds' records. It opens the database only where there are some.
func (r *retry) findAccounts(ctx context.Context, records []kafka.Record) error {
	if !slices.ContainsFunc(records, func(r kafka.Record) bool { return feed.HasSent(&r) }) {
		return nil
	}
	return r.p.WithDirectory(ctx, func(directory *identity.Service) error {
		for i := range records {
			account := feed.FindAccount(r.feeds, app.FeedDirectory{Identity: directory}, &records[i])
			if account != "" {
				records[i].Key = []byte(account)
			}
		}
		return nil
	})
}

func printSent(p *cli.Program, n int) { fmt.Fprintf(p.Out, "%d sent back\n", n) }

// find reads one letter.
func (r *retry) find(ctx context.Context, position event.Position) (letter, error) {
	missing := fmt.Errorf("there is no dead letter at %s", position)
	partitions, err := deadPartitions(ctx, r.cluster)
	if err != nil {
		return letter{}, err
	}
	if position.Partition >= partitions {
		return letter{}, missing
	}
	first, next, err := r.cluster.Offsets(ctx, event.TopicDead, position.Partition)
	if err != nil {
		return letter{}, err
	}
	if position.Offset < first || position.Offset >= next {
		return letter{}, missing
	}
	var found *kafka.Record
	err = scan(ctx, r.cluster, position.Partition, position.Offset, position.Offset+1, func(records []kafka.Record) error {
		if records[0].Offset == position.Offset {
			found = records[0].Clone()
		}
		return nil
	})
	switch {
	case err != nil:
		return letter{}, err
	case found == nil:
		return letter{}, missing
	case !slices.Contains(r.topics, newLetter(found).topic()):
		return letter{}, fmt.Errorf("the dead letter at %s came from %q, not from %s",
			position, newLetter(found).topic(), strings.Join(r.topics, " or "))
	}
	return newLetter(found), nil
}

// originalRecord returns the record without its dead letter headers. Kafka gives it a new time, so its
// event gets a new id; its key assigns it to its account's partition.
func (l letter) originalRecord() kafka.Record {
	headers := make([]kafka.Header, 0, len(l.record.Headers))
	for _, header := range l.record.Headers {
		if !slices.Contains(errorHeaders, header.Key) {
			headers = append(headers, header)
		}
	}
	return kafka.Record{
		Topic: l.topic(), Partition: kafka.AnyPartition,
		Key: l.record.Key, Value: l.record.Value, Headers: headers,
	}
}
