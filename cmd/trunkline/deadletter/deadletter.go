// Package deadletter has the commands that list dead letters and send them back to their raw
// topic.
package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// Command returns the command deadletter with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("deadletter", "The records that could not be normalized", deadletterList(p), deadletterRetry(p))
}

// letter is one dead letter. Its record is valid until the next read.
type letter struct {
	record   *kafka.Record
	position event.Position // in cc.dead
}

func newLetter(record *kafka.Record) letter {
	return letter{record, event.Position{Partition: record.Partition, Offset: record.Offset}}
}

// topic returns the topic of the record that could not be normalized.
func (l letter) topic() string { return string(l.record.Header(event.HeaderOrigTopic)) }

// kind returns the kind of the error, one of a fixed set.
func (l letter) kind() string { return string(l.record.Header(event.HeaderErrorKind)) }

// reason returns the error's text.
func (l letter) reason() string { return string(l.record.Header(event.HeaderError)) }

// deadPartitions returns the number of partitions of cc.dead; 0 if the topic does not exist yet.
func deadPartitions(ctx context.Context, cluster *kafka.Cluster) (int, error) {
	n, err := cluster.Partitions(ctx, event.TopicDead)
	if fault.KindOf(err) == fault.KindNotFound {
		return 0, nil
	}
	return n, err
}

// scan passes the records of a partition of cc.dead to visit, batch by batch, from offset from to
// before offset to. It skips records that retention has deleted meanwhile.
func scan(ctx context.Context, cluster *kafka.Cluster, partition int, from, to int64,
	visit func(records []kafka.Record) error) error {
	for from < to {
		reader := cluster.NewReader(event.TopicDead, partition, from)
		err := scanReader(ctx, reader, to, visit)
		reader.Close()
		gap, ok := errors.AsType[*kafka.GapError](err)
		if !ok || gap.Kind != kafka.GapExpired {
			return err
		}
		from = gap.Resume
	}
	return nil
}

func scanReader(ctx context.Context, reader *kafka.Reader, to int64, visit func([]kafka.Record) error) error {
	for reader.Next() < to {
		records, err := reader.Read(ctx)
		if err != nil {
			return fmt.Errorf("reading dead letters: %w", err)
		}
		for i := range records {
			if records[i].Offset >= to {
				records = records[:i]
				break
			}
		}
		if len(records) == 0 {
			return nil
		}
		if err := visit(records); err != nil {
			return err
		}
	}
	return nil
}
