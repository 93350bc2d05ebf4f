package figures

import (
	"context"
	"fmt"
	"strings"
	"time"

	"trunkline/internal/report"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

const (
	sumDaysEvery = time.Hour
	sumTime      = 50 * time.Millisecond // for which one transaction adds days up
	// minDayAge is the time from the end of a day until it is added up: rows change until
	// stats.late_events, whose default it is.
	minDayAge = 48 * time.Hour
	// minSummedAge is the age from which a row may be of a day with sums. It is less than minDayAge by
	// more than the clocks of nodes differ.
	minSummedAge = 24 * time.Hour
	longestDay   = 26 * hour
	dayTable     = "figures_queue_days"
)

// runDays adds up the days of all accounts that are over, again and again, until ctx ends.
func (s *Store) runDays(ctx context.Context, zones func() map[string]*time.Location) {
	for range retry.Rounds(ctx, sumDaysEvery) {
		for account, zone := range zones() {
			err := s.sumDays(ctx, account, zone, time.Now().Add(-minDayAge))
			if err != nil && ctx.Err() == nil {
				s.log.Warn("adding up the days of figures failed, retrying", "account_id", account, "error", err)
			}
		}
	}
}

// sumDays adds up the days of an account's queues that ended by a time and have no sums.
func (s *Store) sumDays(ctx context.Context, account string, zone *time.Location, until time.Time) error {
	var first int64
	query := "SELECT COALESCE(MIN(interval_start), 0) FROM figures_queues WHERE account_id = $1 AND interval_start >= $2"
	if err := s.db.QueryRowContext(ctx, query, account, s.firstKept()).Scan(&first); err != nil {
		return sqldb.Wrap(err, "looking for the first day")
	}
	if first == 0 {
		return nil
	}

	f := Filter{Filter: report.Filter{Account: account, Start: first, End: until.Unix()}, Location: zone}
	known, err := s.daysWithSums(ctx, f)
	if err != nil {
		return err
	}

	start := intervalStart(time.Unix(first, 0).In(zone), day)
	if start.Unix() < s.firstKept() {
		start = intervalEnd(start, day) // retention has deleted some of its rows
	}

	var missing []daySpan
	for end := intervalEnd(start, day); !end.After(until); start, end = end, intervalEnd(end, day) {
		// Another end is that of another time zone: the account had it when the day was added up.
		if known[start.Unix()] != end.Unix() {
			missing = append(missing, daySpan{start.Unix(), end.Unix()})
		}
	}

	for len(missing) > 0 {
		done, err := s.sumSome(ctx, account, missing)
		if err != nil {
			return err
		}
		missing = missing[done:]
	}

	return nil
}

// daySpan is a day of a time zone, in Unix seconds; the end is excluded.
type daySpan struct{ start, end int64 }

// sumSome replaces the sums of the first of some days, as many as sumTime allows, and returns their
// number. The lock waits for the batches that change older rows, and holds up others, so that none
// falls between the sums and the mark that they are whole.
func (s *Store) sumSome(ctx context.Context, account string, days []daySpan) (done int, err error) {
	err = s.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		// SQLite has one writer at a time.
		if s.db.Postgres() {
			_, err := tx.ExecContext(ctx, "LOCK TABLE figures_days IN SHARE ROW EXCLUSIVE MODE")
			if err != nil {
				return sqldb.Wrap(err, "locking the days of figures")
			}
		}

		began := time.Now()
		for done = 0; done < len(days) && (done == 0 || time.Since(began) < sumTime); done++ {
			if err := sumDay(ctx, tx, account, days[done].start, days[done].end); err != nil {
				return sqldb.Wrap(err, "adding up a day of figures")
			}
		}

		return nil
	})

	return done, err
}

// sumDay replaces the sums of one day.
func sumDay(ctx context.Context, tx *sqldb.BulkTx, account string, start, end int64) error {
	t := Queues.table()
	names, sums := make([]string, len(t.figures)), make([]string, len(t.figures))
	for i, figure := range t.figures {
		names[i], sums[i] = figure.name, fmt.Sprintf(figure.sql, figure.name)
	}

	const ofAccount = " WHERE account_id = $1"
	const ofDay = ofAccount + " AND interval_start >= $2 AND interval_start < $3"
	// Marks of days that overlap are of another time zone of the account: their sums go with the next round.
	statements := []struct {
		text string
		args []any
	}{
		{"DELETE FROM figures_days" + ofAccount + " AND interval_start < $3 AND interval_start > $4" +
			" AND interval_start + interval_seconds > $2",
			[]any{account, start, end, start - longestDay}},
		{"DELETE FROM " + dayTable + ofDay, []any{account, start, end}},
		{"INSERT INTO " + dayTable + " (account_id, queue_id, interval_start, " + strings.Join(names, ", ") + ")" +
			" SELECT account_id, queue_id, CAST($4 AS BIGINT), " + strings.Join(sums, ", ") +
			" FROM figures_queues" + ofDay + " GROUP BY account_id, queue_id", []any{account, start, end, start}},
		{"INSERT INTO figures_days (account_id, interval_start, interval_seconds) VALUES ($1, $2, $3)",
			[]any{account, start, end - start}},
	}

	for _, statement := range statements {
		_, err := tx.ExecContext(ctx, statement.text, statement.args...)
		if err != nil {
			return err
		}
	}

	return nil
}

// startSpan has the starts of rows from first to last, in Unix seconds.
type startSpan struct{ first, last int64 }

// forgetDays deletes the marks of the days in which a batch changes rows. It comes before the
// changes, so that sumDay either waits for the transaction or comes before it.
func forgetDays(ctx context.Context, tx *sqldb.BulkTx, queues []entry) error {
	changed, settled := map[string]startSpan{}, time.Now().Add(-minSummedAge).Unix()
	for i := range queues {
		account, start := queues[i].AccountID, queues[i].Start
		// No day that is so young has been added up.
		if start > settled {
			continue
		}

		old, ok := changed[account]
		if !ok {
			old = startSpan{start, start}
		}

		changed[account] = startSpan{min(old.first, start), max(old.last, start)}
	}

	for account, at := range changed {
		_, err := tx.ExecContext(ctx, `DELETE FROM figures_days
			WHERE account_id = $1 AND interval_start BETWEEN $2 AND $3 AND interval_start + interval_seconds > $4`,
			account, at.first-longestDay, at.last, at.first)
		if err != nil {
			return sqldb.Wrap(err, "forgetting days of figures")
		}
	}

	return nil
}

// daysWithSums returns the days that overlap the filter's range and have sums: the end of each by
// its start.
func (s *Store) daysWithSums(ctx context.Context, f Filter) (map[int64]int64, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT interval_start, interval_seconds FROM figures_days
		WHERE account_id = $1 AND interval_start BETWEEN $2 AND $3`, f.Account, f.Start-longestDay, f.End)
	days := map[int64]int64{}
	_, err = sqldb.Collect(rows, err, "reading days of figures", func(scan sqldb.ScanFunc) (start int64, err error) {
		var seconds int64
		err = scan(&start, &seconds)
		days[start] = start + seconds
		return start, err
	})

	return days, err
}

// tableRange is a part of a report's range that is read from one table.
type tableRange struct {
	table      string
	start, end int64 // inclusive
}

// tableRanges divides the filter's range, the newest run first: whole days of the account's time zone that
// have sums are read from these.
func (s *Store) tableRanges(ctx context.Context, f Filter) (found []tableRange, err error) {
	all := []tableRange{{f.Kind.table().name, f.Start, f.End}}
	if f.Kind != Queues || f.Seconds != day && f.GroupBy != ByID {
		return all, nil
	}

	days, err := s.daysWithSums(ctx, f)
	if err != nil || len(days) == 0 {
		return all, err
	}

	for end := f.End; end >= f.Start; {
		at := intervalStart(time.Unix(end, 0).In(f.Location), day)
		part := tableRange{all[0].table, max(at.Unix(), f.Start), end}
		dayEnd, ok := days[at.Unix()]
		// Only a whole day, and one of the time zone that the account has.
		if ok && dayEnd == intervalEnd(at, day).Unix() && part.start == at.Unix() && end == dayEnd-1 {
			part.table = dayTable
		}

		last := len(found) - 1
		// Days beside each other are one query.
		if last >= 0 && found[last].table == part.table {
			found[last].start = part.start
		} else {
			found = append(found, part)
		}

		end = part.start - 1
	}

	return found, nil
}
