package figures

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"trunkline/internal/sqldb"
)

// accountsAtOnce bounds the accounts of one query.
const accountsAtOnce = 500

// QueuesSince returns for each queue of the accounts the sum of its intervals that
// begin at since (Unix seconds) or later; Start is since, Seconds 0. Thresholds are
// the highest of all intervals.
func (s *Store) QueuesSince(ctx context.Context, accounts []string, since int64) (all []*Row, err error) {
	t := Queues.table()
	sums := make([]string, len(t.figures))
	for i, f := range t.figures {
		sums[i] = "CAST(SUM(" + f.name + ") AS BIGINT)"
		if strings.HasSuffix(f.name, "_max") || strings.HasSuffix(f.name, "_seconds") {
			sums[i] = "MAX(" + f.name + ")"
		}
	}

	for chunk := range slices.Chunk(accounts, accountsAtOnce) {
		args := []any{since}
		places := make([]string, len(chunk))
		for i, account := range chunk {
			args = append(args, account)
			places[i] = fmt.Sprintf("$%d", i+2)
		}

		query := fmt.Sprintf(
			"SELECT account_id, queue_id, %s FROM %s WHERE interval_start >= $1 AND account_id IN (%s) GROUP BY account_id, queue_id",
			strings.Join(sums, ", "), t.name, strings.Join(places, ", "))

		rows, err := s.db.QueryContext(ctx, query, args...)
		found, err := sqldb.Collect(rows, err, "adding up figures", func(scan sqldb.ScanFunc) (*Row, error) {
			r := &Row{Kind: Queues, Start: since, figures: make([]int64, len(t.figures))}
			targets := []any{&r.AccountID, &r.ID}
			for i := range r.figures {
				targets = append(targets, &r.figures[i])
			}
			return r, scan(targets...)
		})
		if err != nil {
			return nil, err
		}

		all = append(all, found...)
	}

	return all, nil
}
