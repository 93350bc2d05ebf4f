package recording

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/recording/envelope"
)

// Progress counts the recordings that Reseal has moved.
type Progress struct{ Done, Failed, Total int }

// Reseal brings sealed recordings (of one account, or of all: "") to what their
// account's configuration says now: the newest key, and its algorithm. Where
// only the key differs, the header is replaced and the body copied; where the
// algorithm differs, the audio is sealed anew. Plain recordings stay plain. A
// recording that fails is left as it is and counted. It may be broken off and
// begun again at any time, beside running servers.
func (s *Service) Reseal(ctx context.Context, accountID string, progress func(Progress)) (Progress, error) {
	var p Progress
	accounts, err := s.rows.sealedAccounts(ctx, accountID)
	if err != nil {
		return p, err
	}
	newest := make(map[string]encryption.Sealing, len(accounts))
	for _, account := range accounts {
		if newest[account], err = s.keys.Current(ctx, account); err != nil {
			return p, fmt.Errorf("finding the newest key of account %s: %w", account, err)
		}
		n, err := s.rows.countOthers(ctx, account, newest[account])
		if err != nil {
			return p, err
		}
		p.Total += n
	}
	for _, account := range accounts {
		if err := s.resealAccount(ctx, account, newest[account], &p, progress); err != nil {
			return p, err
		}
	}
	if p.Failed > 0 {
		return p, fault.Internal(nil, fmt.Sprintf("%d of %d recordings could not be moved to the newest key", p.Failed, p.Total))
	}
	return p, nil
}

const resealPage = 100

func (s *Service) resealAccount(ctx context.Context, account string, current encryption.Sealing, p *Progress, progress func(Progress)) error {
	to, err := s.sealer(current)
	if err != nil {
		return err
	}
	defer to.key.Root.Wipe()
	for after := ""; ; {
		page, err := s.rows.list(ctx, `WHERE account_id = $1 AND recording_id > $2 AND encrypted
			AND (key_version <> $3 OR algorithm <> $4) ORDER BY recording_id LIMIT $5`,
			account, after, current.Key.Version, current.Algorithm, resealPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			if err := s.resealRecording(ctx, r, to); err == nil {
				p.Done++
			} else if ctx.Err() != nil {
				return ctx.Err()
			} else {
				p.Failed++
				s.log.ErrorContext(ctx, "recording reseal failed",
					"account_id", account, "recording_id", r.RecordingID, "error", err)
			}
			after = r.RecordingID
			progress(*p)
		}
	}
}

// resealRecording writes the recording's new object beside the old one, makes the row
// name it, and only then deletes the old one.
func (s *Service) resealRecording(ctx context.Context, r *row, to *sealer) error {
	object, err := s.backend.Open(ctx, r.object)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }() // only read
	moved := *r
	moved.object = objectName(r.AccountID, r.RecordingID, true)
	moved.StoredSize, err = s.backend.Put(ctx, moved.object, func(w io.Writer) error {
		h, err := s.sealAgain(ctx, w, object, r, to)
		if err == nil {
			moved.describe(h)
		}
		return err
	})
	if err != nil {
		return err
	}
	done, err := s.rows.move(ctx, r, &moved)
	if err != nil {
		return err // the row may have moved: Sweep deletes the object that no row names
	}
	if !done { // deleted or moved by someone else meanwhile
		return s.backend.Delete(ctx, moved.object)
	}
	return s.backend.Delete(ctx, r.object)
}

func (s *Service) sealAgain(ctx context.Context, w io.Writer, object io.ReadSeeker, r *row, to *sealer) (*envelope.Header, error) {
	if r.Algorithm == to.suite.String() {
		return envelope.Rewrap(w, object, r.want(), s.rootOf(ctx, r), to.key)
	}
	audio, err := envelope.NewReader(object, r.want(), s.rootOf(ctx, r))
	if err != nil {
		return nil, err
	}
	h, _, err := envelope.Seal(w, audio, envelope.Params{
		Suite: to.suite, AccountID: r.AccountID, RecordingID: r.RecordingID,
		ContentType: r.ContentType, Created: time.UnixMilli(r.createdAt), Key: to.key,
	})
	return h, errors.Join(err, audio.Close())
}

func (t rows) sealedAccounts(ctx context.Context, only string) (accounts []string, err error) {
	const doing = "listing accounts with sealed recordings"
	result, err := t.db.QueryContext(ctx, `SELECT DISTINCT account_id FROM recordings
		WHERE encrypted AND ($1 = '' OR account_id = $1) ORDER BY account_id`, only)
	if err != nil {
		return nil, sqldb.Wrap(err, doing)
	}
	defer func() { err = errors.Join(err, sqldb.Wrap(result.Close(), doing)) }()
	for result.Next() {
		var account string
		if err := result.Scan(&account); err != nil {
			return nil, sqldb.Wrap(err, doing)
		}
		accounts = append(accounts, account)
	}
	return accounts, sqldb.Wrap(result.Err(), doing)
}

func (t rows) countOthers(ctx context.Context, account string, current encryption.Sealing) (n int, err error) {
	err = t.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM recordings WHERE account_id = $1 AND encrypted
		AND (key_version <> $2 OR algorithm <> $3)`, account, current.Key.Version, current.Algorithm).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, sqldb.Wrap(err, "counting recordings to move")
}
