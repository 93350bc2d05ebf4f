// Package topics has the commands on the Kafka topics.
package topics

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/settings"
)

// Command returns the command topics with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("topics", "The Kafka topics", topicsList(p), topicsCreate(p))
}

// topicRow is a topic as --json shows it.
type topicRow struct {
	Name              string `json:"name"`
	Partitions        int    `json:"partitions"`
	ReplicationFactor int    `json:"replication_factor"`
	Records           int64  `json:"records"`
}

func topicsList(p *cli.Program) *cobra.Command {
	command := &cobra.Command{Use: "list", Short: "List Trunkline's topics that exist", Args: cli.ExactArgs()}
	asJSON := cli.JSONListFlag(command.Flags())
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.WithKafka(cmd.Context(), func(s *settings.Settings, cluster *kafka.Cluster) error {
			rows, err := topicRows(cmd.Context(), cluster, backend.TopicSpecs(s))
			if err != nil {
				return err
			}

			return cli.List(p.Out, *asJSON, rows, []string{"TOPIC", "PARTITIONS", "REPLICAS", "RECORDS"},
				func(t topicRow) []string {
					return []string{t.Name, strconv.Itoa(t.Partitions), strconv.Itoa(t.ReplicationFactor),
						strconv.FormatInt(t.Records, 10)}
				})
		})
	}

	return command
}

// topicRows returns the existing topics of Trunkline. With an empty prefix the cluster may have
// others.
func topicRows(ctx context.Context, cluster *kafka.Cluster, specs []topics.Spec) ([]topicRow, error) {
	infos, err := cluster.Topics(ctx)
	if err != nil {
		return nil, err
	}

	var rows []topicRow
	for _, spec := range specs {
		for _, info := range infos {
			if info.Name != spec.Name {
				continue
			}

			row := topicRow{info.Name, info.Partitions, info.ReplicationFactor, 0}
			for n := range info.Partitions {
				records, err := countRecords(ctx, cluster, info.Name, n)
				if err != nil {
					return nil, err
				}
				row.Records += records
			}

			rows = append(rows, row)
		}
	}

	return rows, nil
}

// countRecords returns the number of offsets in a partition's log. It retries for some seconds
// while the leader is being elected, as after the creation of a topic.
func countRecords(ctx context.Context, cluster *kafka.Cluster, topic string, partition int) (int64, error) {
	backoff := retry.Backoff{First: 100 * time.Millisecond, Max: time.Second}
	for deadline := time.Now().Add(electionTimeout); ; {
		first, next, err := cluster.Offsets(ctx, topic, partition)
		if err == nil || fault.KindOf(err) != fault.KindUnavailable || time.Now().After(deadline) ||
			!backoff.Wait(ctx) {
			return next - first, err
		}
	}
}

const electionTimeout = 10 * time.Second

func topicsCreate(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "create",
		Short: "Create the missing topics",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.WithNewKafka(cmd.Context(), func(s *settings.Settings, cluster *kafka.Cluster) error {
				specs := backend.TopicSpecs(s)
				if err := cluster.EnsureTopics(cmd.Context(), specs); err != nil {
					return err
				}

				problems, err := cluster.CheckTopics(cmd.Context(), specs)
				if err != nil {
					return err
				}

				for _, problem := range problems {
					fmt.Fprintln(p.Err, "trunkline: warning: "+problem.Message)
				}

				return nil
			})
		},
	}
}
