package deadletter

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

// letterFilter selects dead letters.
type letterFilter struct{ topic, kind string }

func (f letterFilter) matches(l letter) bool {
	return (f.topic == "" || f.topic == l.topic()) && (f.kind == "" || f.kind == l.kind())
}

func deadletterList(p *cli.Program) *cobra.Command {
	var filter letterFilter
	var limit int
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the newest dead letters in chronological order",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Usagef("--limit must be at least 1, is %d", limit)
			}
			return p.WithKafka(cmd.Context(), func(_ *settings.Settings, cluster *kafka.Cluster) error {
				rows, err := newestLetters(cmd.Context(), cluster, filter, limit, asJSON)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(p, rows)
				}
				return printTable(p, rows)
			})
		},
	}
	command.Flags().StringVar(&filter.topic, "topic", "", "only those from this topic")
	command.Flags().StringVar(&filter.kind, "kind", "", "only those of this kind of error")
	command.Flags().IntVar(&limit, "limit", 100, "maximum number of dead letters")
	command.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line, with value and headers")
	return command
}

// letterRow is a dead letter as --json shows it. Its value is JSON if it is valid JSON, text if
// it is valid UTF-8, or base64.
type letterRow struct {
	Position string            `json:"position"`
	Time     string            `json:"time"`
	Topic    string            `json:"topic"`
	Kind     string            `json:"kind"`
	Reason   string            `json:"reason"`
	Size     int               `json:"size"`
	Key      string            `json:"key,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Value    any               `json:"value,omitempty"`
	Base64   string            `json:"value_base64,omitempty"`

	recordedAt time.Time
}

// newestLetters reads all dead letters and returns the newest in chronological order, with values
// and headers if withPayload is set.
func newestLetters(ctx context.Context, cluster *kafka.Cluster, filter letterFilter, limit int, withPayload bool) ([]letterRow, error) {
	partitions, err := deadPartitions(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var kept []letterRow
	for n := range partitions {
		first, next, err := cluster.Offsets(ctx, event.TopicDead, n)
		if err != nil {
			return nil, err
		}
		err = scan(ctx, cluster, n, first, next, func(records []kafka.Record) error {
			for i := range records {
				l := newLetter(&records[i])
				if filter.matches(l) {
					kept = append(kept, l.row(withPayload))
				}
				if len(kept) >= 2*limit {
					kept = sortNewest(kept, limit)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sortNewest(kept, limit), nil
}

func sortNewest(rows []letterRow, limit int) []letterRow {
	slices.SortStableFunc(rows, func(a, b letterRow) int { return a.recordedAt.Compare(b.recordedAt) })
	kept := rows[max(0, len(rows)-limit):]
	return append(rows[:0], kept...)
}

func (l letter) row(withPayload bool) letterRow {
	row := letterRow{
		Position: l.position.String(), Time: l.record.Time.UTC().Format(time.RFC3339Nano), recordedAt: l.record.Time,
		Topic: l.topic(), Kind: l.kind(), Reason: l.reason(),
		Size: len(l.record.Value),
	}
	if !withPayload {
		return row
	}
	row.Key = string(l.record.Key)
	row.Headers = make(map[string]string, len(l.record.Headers))
	for _, header := range l.record.Headers {
		row.Headers[header.Key] = string(header.Value)
	}
	switch value := slices.Clone(l.record.Value); {
	case json.Valid(value) && utf8.Valid(value):
		row.Value = json.RawMessage(value)
	case utf8.Valid(value):
		row.Value = string(value)
	default:
		row.Base64 = base64.StdEncoding.EncodeToString(value)
	}
	return row
}

func printJSON(p *cli.Program, rows []letterRow) error {
	for _, row := range rows {
		if err := cli.JSONLine(p.Out, row); err != nil {
			return err
		}
	}
	return nil
}

func printTable(p *cli.Program, rows []letterRow) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = []string{
			row.Position, row.recordedAt.UTC().Format("2006-01-02T15:04:05.000Z"),
			cli.OrDash(cli.Printable(row.Topic)), cli.OrDash(cli.Printable(row.Kind)), cli.OrDash(cli.Printable(row.Reason)), strconv.Itoa(row.Size),
		}
	}
	return cli.Table(p.Out, []string{"POSITION", "TIME", "TOPIC", "KIND", "REASON", "SIZE"}, cells)
}
