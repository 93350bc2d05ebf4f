package consume

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// olderProgram is a program of the version before: the table and the statements by which it keeps a consumer's
// positions.
type olderProgram struct {
	older  OlderTable
	schema string
	read   string // next, and what its fence compares
	move   string // from $2 (and $3) to $4, in the log $5
}

var olderPrograms = map[string]olderProgram{
	"cdrindex": {OlderTable{Table: "cdrindex_offsets", Generation: "epoch"},
		`CREATE TABLE cdrindex_offsets (topic_partition INTEGER PRIMARY KEY, next BIGINT NOT NULL, epoch BIGINT NOT NULL,
			topic_id TEXT NOT NULL DEFAULT '', leader_epoch BIGINT NOT NULL DEFAULT -1)`,
		`SELECT next, epoch FROM cdrindex_offsets WHERE topic_partition = $1`,
		`UPDATE cdrindex_offsets SET next = $4, epoch = $3, topic_id = $5, leader_epoch = 1
			WHERE topic_partition = $1 AND next = $2 AND epoch = $3`},
	"figures": {OlderTable{Table: "figures_offsets"},
		`CREATE TABLE figures_offsets (topic_partition BIGINT NOT NULL PRIMARY KEY, next BIGINT NOT NULL,
			topic_id TEXT NOT NULL, leader_epoch BIGINT NOT NULL)`,
		`SELECT next, topic_id FROM figures_offsets WHERE topic_partition = $1`,
		`UPDATE figures_offsets SET next = $4, topic_id = $5, leader_epoch = 1
			WHERE topic_partition = $1 AND next = $2 AND topic_id = $3`},
	"webhook": {OlderTable{Table: "webhook_partitions", LastID: true},
		`CREATE TABLE webhook_partitions (topic_partition BIGINT PRIMARY KEY, next BIGINT NOT NULL, topic_id TEXT NOT NULL,
			leader_epoch BIGINT NOT NULL, last_id BIGINT NOT NULL, version BIGINT NOT NULL)`,
		`SELECT next, version FROM webhook_partitions WHERE topic_partition = $1`,
		`UPDATE webhook_partitions SET next = $4, topic_id = $5, leader_epoch = 1, last_id = 7, version = version + 1
			WHERE topic_partition = $1 AND next = $2 AND version = $3`},
}

// Programs of both versions have a partition at once, after an update, one that failed, and the next: each goes on
// where the other ended, and of two that move the position from the same place one is told.
func TestAProgramOfTheVersionBeforeSharesThePositions(t *testing.T) {
	for name, program := range olderPrograms {
		t.Run(name, func(t *testing.T) {
			testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) { program.share(t, testdb.Open(t, at)) })
		})
	}
}

func (o olderProgram) share(t *testing.T, db *sqldb.DB) {
	if _, err := db.ExecContext(t.Context(), o.schema); err != nil {
		t.Fatal(err)
	}

	positions, err := NewPositions(t.Context(), db, "test", o.older)
	if err != nil {
		t.Fatal(err)
	}

	const start, each = 1000, 40
	if _, err := positions.FindOrCreate(t.Context(), 3, start); err != nil {
		t.Fatal(err)
	}

	log := kafka.TopicID{1}
	var moved [4]int64 // by each program
	var programs sync.WaitGroup

	for i := range moved {
		programs.Go(func() {
			for done := 0; done < each && t.Context().Err() == nil; {
				by := 1 + rand.Int64N(3)
				move := func() (bool, error) { return o.moveBy(t.Context(), db, log, by) }
				if i%2 == 0 {
					move = func() (bool, error) { return moveBy(t.Context(), positions, log, by) }
				}

				ok, err := move()
				if err != nil {
					t.Error(err)
					return
				}

				if ok {
					done, moved[i] = done+1, moved[i]+by
				}
			}
		})
	}

	programs.Wait()
	want := start + moved[0] + moved[1] + moved[2] + moved[3]
	if at, ok, err := positions.Find(t.Context(), db, 3); err != nil || !ok || at.Offset != want || at.TopicID != log {
		t.Errorf("at %+v, %v, want offset %d", at, err, want)
	}
}

// moveBy moves the position as the older program does, and reports whether it may.
func (o olderProgram) moveBy(ctx context.Context, db *sqldb.DB, log kafka.TopicID, by int64) (ok bool, err error) {
	var next int64
	var fence any
	if err := db.QueryRowContext(ctx, o.read, 3).Scan(&next, &fence); err != nil {
		return false, err
	}

	var n int
	err = db.BulkTx(ctx, func(tx *sqldb.BulkTx) (err error) {
		n, err = sqldb.Exec(ctx, tx, o.move, 3, next, fence, next+by, log)
		return err
	})

	return n > 0, err
}

// moveBy moves the position, and reports whether it may.
func moveBy(ctx context.Context, p *Positions, log kafka.TopicID, by int64) (ok bool, err error) {
	from, _, err := p.Find(ctx, p.db, 3)
	if err != nil {
		return false, err
	}

	to := Position{LogPosition: kafka.LogPosition{TopicID: log, Offset: from.Offset + by},
		LastID: event.ID(from.Offset)}
	err = p.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error { return p.Move(ctx, tx, 3, from, &to) })
	if errors.Is(err, ErrMoved) {
		return false, nil
	}

	return err == nil, err
}

// The position of a database that only the program of the version before has used is taken over.
func TestPositionsOfTheVersionBeforeAreTakenOver(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		s, log := openStore(t, at), kafkatest.NewLog(1)
		addRecords(log, "1", 100)
		_, err := s.db.ExecContext(t.Context(),
			`INSERT INTO older_offsets (topic_partition, next, epoch) VALUES (0, 60, 4)`)
		if err != nil {
			t.Fatal(err)
		}
		defer s.start(log)()

		s.await(t, 100)

		position, _, err := s.positions.Find(t.Context(), s.db, 0)
		if n := s.count(t); err != nil || n != 40 || position.Generation != 4 {
			t.Errorf("%d records stored, at %+v, %v", n, position, err)
		}
	})
}
