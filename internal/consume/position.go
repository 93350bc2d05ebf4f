package consume

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrMoved is returned if another process has moved a position.
var ErrMoved = errors.New("another process has the partition")

// Position is how far a consumer has stored a partition: all records before it.
type Position struct {
	kafka.LogPosition
	Generation int64    // how often the topic was found to be created again
	LastID     event.ID // of the last event before it, of consumers that drop repeats by it; 0: not known
	version    int64    // raised with every change; 0: never stored
}

// Positions are the positions of one consumer in the database. They are safe for concurrent use.
type Positions struct {
	db       *sqldb.DB
	consumer string
	older    OlderTable
}

// OlderTable is the consumer's own table, which the program of the version before reads and writes:
// topic_partition, next, topic_id and leader_epoch, and the columns named here. A change is stored there in the
// same transaction, and fails if the other program has made one; so its position is the one that is read.
type OlderTable struct {
	Table      string
	Generation string // column of Position.Generation; "": none
	LastID     bool   // it has last_id, and version, which every change raises
}

// NewPositions migrates the table of positions and returns those of a consumer.
func NewPositions(ctx context.Context, db *sqldb.DB, consumer string, older OlderTable) (*Positions, error) {
	if err := db.Migrate(ctx, "consume", migrations); err != nil {
		return nil, err
	}
	return &Positions{db: db, consumer: consumer, older: older}, nil
}

// Find returns the position of a partition; ok is false if there is none.
func (p *Positions) Find(ctx context.Context, q sqldb.Runner, partition int) (at Position, ok bool, err error) {
	names, values := p.older.columns(&at)
	row := q.QueryRowContext(ctx, `SELECT `+strings.Join(names, ", ")+`, COALESCE((SELECT version FROM log_positions
		WHERE consumer = $1 AND topic_partition = $2), 0) FROM `+p.older.Table+` WHERE topic_partition = $2`,
		p.consumer, partition)
	err = sqldb.FindInto(row, sql.ErrNoRows, "reading a position", append(values, &at.version)...)
	if errors.Is(err, sql.ErrNoRows) {
		return at, false, nil
	}
	return at, err == nil, err
}

// FindOrCreate returns the position of a partition. If there is none, it stores the one at the offset first. It returns
// ErrMoved if another process does so at the same time.
func (p *Positions) FindOrCreate(ctx context.Context, partition int, first int64) (at Position, err error) {
	err = p.db.BulkTx(ctx, func(tx *sqldb.BulkTx) (err error) {
		var ok bool
		at, ok, err = p.Find(ctx, tx, partition)
		if err != nil || ok {
			return err
		}

		at.LogPosition = kafka.AtOffset(first)
		return p.Move(ctx, tx, partition, Position{}, &at)
	})

	return at, err
}

// Move stores within tx that a partition is at another position. It returns ErrMoved if it is not at from, as it was
// read or moved to last.
func (p *Positions) Move(ctx context.Context, tx sqldb.Runner, partition int, from Position, to *Position) error {
	to.version = from.version + 1
	n, err := sqldb.Exec(ctx, tx, `INSERT INTO log_positions
		(consumer, topic_partition, next, topic_id, leader_epoch, generation, last_id, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (consumer, topic_partition) DO UPDATE
		SET next = excluded.next, topic_id = excluded.topic_id, leader_epoch = excluded.leader_epoch,
			generation = excluded.generation, last_id = excluded.last_id, version = excluded.version
		WHERE log_positions.version = excluded.version - 1`, p.consumer, partition, to.Offset, to.TopicID,
		to.LeaderEpoch, to.Generation, int64(to.LastID), to.version)
	if err == nil && n > 0 {
		n, err = p.moveOlder(ctx, tx, partition, from, to)
	}
	if err == nil && n == 0 {
		return ErrMoved
	}

	return sqldb.Wrap(err, "storing a position")
}

// columns returns the columns of a position and pointers to their values.
func (o OlderTable) columns(at *Position) (names []string, values []any) {
	names, values = []string{"next", "topic_id", "leader_epoch"}, []any{&at.Offset, &at.TopicID, &at.LeaderEpoch}
	if o.Generation != "" {
		names, values = append(names, o.Generation), append(values, &at.Generation)
	}
	if o.LastID {
		names, values = append(names, "last_id"), append(values, (*int64)(&at.LastID))
	}
	return names, values
}

// moveOlder is Move in the consumer's own table. It returns 0 if the program of the version before has moved it.
func (p *Positions) moveOlder(ctx context.Context, tx sqldb.Runner, partition int, from Position,
	to *Position) (changed int, err error) {
	names, values := p.older.columns(to)
	places, sets := "$1", "" // the placeholders of VALUES, and what SET has
	for i, name := range names {
		places += fmt.Sprintf(", $%d", i+4)
		sets += ", " + name + " = excluded." + name
	}

	if p.older.LastID {
		names, places, sets = append(names, "version"), places+", 1", sets+", version = "+p.older.Table+".version + 1"
	}

	return sqldb.Exec(ctx, tx, fmt.Sprintf(`INSERT INTO %[1]s (topic_partition, %[2]s) VALUES (%[3]s)
		ON CONFLICT (topic_partition) DO UPDATE SET %[4]s WHERE %[1]s.next = $2 AND %[1]s.topic_id = $3`,
		p.older.Table, strings.Join(names, ", "), places, sets[len(", "):]),
		append([]any{partition, from.Offset, from.TopicID}, values...)...)
}
