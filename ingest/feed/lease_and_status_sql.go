package feed

import (
	"context"
	"embed"
	"encoding/json"
	"time"

	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Store keeps the leases and the status of feeds in SQL.
type Store struct {
	db *sqldb.DB
}

// NewStore returns the store and migrates its tables.
func NewStore(ctx context.Context, db *sqldb.DB) (*Store, error) {
	if err := db.Migrate(ctx, "feeds", migrationFiles); err != nil {
		return nil, err
	}
	return &Store{db: db}, nil
}

// singleNode reports whether no other node can share the database.
func (s *Store) singleNode() bool { return !s.db.Postgres() }

// acquireLease acquires or renews the lease of a slot of a feed. It returns false while another node has it.
func (s *Store) acquireLease(ctx context.Context, feed string, slot int, node string,
	lease time.Duration) (acquired bool, err error) {
	// The database's clock decides: those of the nodes may differ.
	rows, err := s.db.ExecWithoutTx(ctx,
		`INSERT INTO feeds_leases (feed, slot, node, expires_at) VALUES ($1, $2, $3, `+s.db.ClockExpr()+` + $4)
		ON CONFLICT (feed, slot) DO UPDATE SET node = excluded.node, expires_at = excluded.expires_at
		WHERE feeds_leases.node = excluded.node OR feeds_leases.expires_at <= `+s.db.ClockExpr(), feed, slot, node,
		lease.Milliseconds())
	return rows == 1, sqldb.Wrap(err, "acquiring the lease of a feed")
}

// releaseLeases releases the node's leases of a feed, except that of slot keep; -1 releases all.
func (s *Store) releaseLeases(ctx context.Context, feed, node string, keep int) error {
	_, err := s.db.ExecWithoutTx(ctx, `DELETE FROM feeds_leases WHERE feed = $1 AND node = $2 AND slot <> $3`, feed,
		node, keep)
	return sqldb.Wrap(err, "releasing the leases of a feed")
}

// statusAge is the time for which the status of a node that no longer updates it is kept.
const statusAge = time.Minute

// storedStatus is the stored form of a node's status and progress.
type storedStatus struct {
	Status
	Progress nodeProgress `json:"progress"`
	Accounts []string     `json:"accounts,omitempty"` // as in the settings; none: the directory's domains decide
}

// putStatus stores the status of the node, and deletes those older than statusAge.
func (s *Store) putStatus(ctx context.Context, status Status, p nodeProgress, accounts []string) error {
	value, err := json.Marshal(storedStatus{status, p, accounts})
	if err != nil {
		return err
	}

	return sqldb.Wrap(s.db.WithoutTx(ctx, func(tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO feeds_status (feed, node, state, status, updated_at) VALUES ($1, $2, $3, $4, `+s.db.ClockExpr()+`)
			ON CONFLICT (feed, node) DO UPDATE SET state = excluded.state, status = excluded.status, updated_at = excluded.updated_at`,
			status.Name, status.Node, status.State, string(value))
		if err != nil {
			return err
		}

		_, err = tx.ExecContext(ctx, `DELETE FROM feeds_status WHERE updated_at < `+s.db.ClockExpr()+` - $1`,
			statusAge.Milliseconds())
		return err
	}), "storing the status of a feed")
}

// deleteStatus deletes the node's status of a feed.
func (s *Store) deleteStatus(ctx context.Context, feed, node string) error {
	_, err := s.db.ExecWithoutTx(ctx, `DELETE FROM feeds_status WHERE feed = $1 AND node = $2`, feed, node)
	return sqldb.Wrap(err, "deleting the status of a feed")
}

// otherConnected reports whether another node is connected to the feed's platform.
func (s *Store) otherConnected(ctx context.Context, feed, node string) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx,
		`SELECT COUNT(*) FROM feeds_status WHERE feed = $1 AND node <> $2 AND state = $3 AND updated_at > `+s.db.ClockExpr()+` - $4`,
		feed, node, StateConnected, leaseTime.Milliseconds()).Scan(&n)
	return n > 0, sqldb.Wrap(err, "reading the status of a feed")
}

// peers returns the progress of the feed's other nodes that have stored it within the given time.
func (s *Store) peers(ctx context.Context, feed, node string, within time.Duration) ([]peerProgress, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT status, `+s.db.ClockExpr()+` - updated_at FROM feeds_status
		WHERE feed = $1 AND node <> $2 AND updated_at > `+s.db.ClockExpr()+` - $3`, feed, node, within.Milliseconds())
	return sqldb.Collect(rows, err, "reading the progress of a feed", func(scan sqldb.ScanFunc) (peerProgress, error) {
		var value string
		var age int64
		if err := scan(&value, &age); err != nil {
			return peerProgress{}, err
		}

		var p storedStatus
		err := json.Unmarshal([]byte(value), &p)
		return peerProgress{p.Progress, time.Duration(age) * time.Millisecond}, err
	})
}

// List returns the status of each feed on each node that has stored it within leaseTime, ordered by
// feed and node.
func (s *Store) List(ctx context.Context) ([]Status, error) {
	found, err := s.ListWithAccounts(ctx)
	statuses := make([]Status, len(found))
	for i := range found {
		statuses[i] = found[i].Status
	}
	return statuses, err
}

// AccountsStatus is a status with the accounts that the feed's settings name; none: the
// directory's domains decide.
type AccountsStatus struct {
	Status
	Accounts []string
}

// ListWithAccounts is List with the feeds' accounts.
func (s *Store) ListWithAccounts(ctx context.Context) ([]AccountsStatus, error) {
	rows, err := s.db.QueryContext(ctx,
		`SELECT status FROM feeds_status WHERE updated_at > `+s.db.ClockExpr()+` - $1 ORDER BY feed, node`,
		leaseTime.Milliseconds())
	return sqldb.Collect(rows, err, "reading the status of the feeds",
		func(scan sqldb.ScanFunc) (AccountsStatus, error) {
			var value string
			if err := scan(&value); err != nil {
				return AccountsStatus{}, err
			}

			var stored storedStatus
			err := json.Unmarshal([]byte(value), &stored)
			return AccountsStatus{stored.Status, stored.Accounts}, err
		})
}
