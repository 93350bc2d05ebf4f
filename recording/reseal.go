package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/recording/envelope"
)

// Progress has the numbers of recordings that Reseal has re-encrypted, that failed, and
// that it has to re-encrypt in total.
type Progress struct{ Done, Failed, Total int }

// Reseal re-encrypts sealed recordings with the current key and algorithm of their
// account's configuration: those of one account, or of all for "". If only the key
// differs, the header is replaced and the body copied. Plain recordings stay plain. A
// recording that fails is counted and not changed. Reseal may run while servers run, and
// may be interrupted and repeated at any time.
func (s *Service) Reseal(ctx context.Context, accountID string, progress func(Progress)) (Progress, error) {
	var p Progress
	accounts, err := s.rows.sealedAccounts(ctx, accountID)
	if err != nil {
		return p, err
	}

	current := make(map[string]encryption.Sealing, len(accounts))
	for _, account := range accounts {
		current[account], err = s.keys.Current(ctx, account)
		if err != nil {
			return p, fmt.Errorf("finding the newest key of account %s: %w", account, err)
		}

		n, err := s.rows.countOutdated(ctx, account, current[account])
		if err != nil {
			return p, err
		}

		p.Total += n
	}

	for _, account := range accounts {
		if err := s.resealAccount(ctx, account, current[account], &p, progress); err != nil {
			return p, err
		}
	}

	if p.Failed > 0 {
		return p, fault.Internal(nil,
			fmt.Sprintf("%d of %d recordings could not be moved to the newest key", p.Failed, p.Total))
	}

	return p, nil
}

const resealPageSize = 100

func (s *Service) resealAccount(ctx context.Context, account string, current encryption.Sealing, p *Progress,
	progress func(Progress)) error {
	target, err := s.newSealer(current)
	if err != nil {
		return err
	}
	defer target.key.Root.Wipe()

	// By id and not from the beginning: one that failed is not tried again and again.
	for after := ""; ; {
		page, err := s.rows.selectRows(ctx, `WHERE account_id = $1 AND recording_id > $2 AND encrypted
			AND (key_version <> $3 OR algorithm <> $4) ORDER BY recording_id LIMIT $5`,
			account, after, current.Key.Version, current.Algorithm, resealPageSize)
		if err != nil || len(page) == 0 {
			return err
		}

		for _, r := range page {
			err := s.resealRecording(ctx, r, target)
			if err == nil {
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

// resealRecording writes a new object of the recording, updates the row to refer to it,
// and then deletes the old object.
func (s *Service) resealRecording(ctx context.Context, r *row, target *recordingSealer) error {
	object, err := s.backend.Open(ctx, r.object)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }() // opened for reading only

	updated := *r
	updated.object = objectName(r.AccountID, r.RecordingID, true)
	updated.StoredSize, err = s.backend.Put(ctx, updated.object, func(w io.Writer) error {
		h, err := s.reencrypt(ctx, w, object, r, target)
		if err == nil {
			updated.setKeyFields(h)
		}
		return err
	})
	if err != nil {
		return err
	}

	replaced, err := s.rows.replaceObject(ctx, r, &updated)
	if err != nil {
		return err // the update may have committed: Sweep deletes the object without a row
	}

	if !replaced { // deleted or re-encrypted by another process meanwhile
		return s.backend.Delete(ctx, updated.object)
	}

	return s.backend.Delete(ctx, r.object)
}

// reencrypt writes the recording in object to w, encrypted with target.
func (s *Service) reencrypt(ctx context.Context, w io.Writer, object io.ReadSeeker, r *row,
	target *recordingSealer) (*envelope.Header, error) {
	// The body does not depend on the account's key, so another key needs only another header.
	if r.Algorithm == target.suite.String() {
		return envelope.Rewrap(w, object, r.expected(), s.rootFinder(ctx, r), target.key)
	}

	audio, err := envelope.NewReader(object, r.expected(), s.rootFinder(ctx, r))
	if err != nil {
		return nil, err
	}

	h, _, err := envelope.Seal(w, audio, envelope.Params{
		Suite: target.suite, AccountID: r.AccountID, RecordingID: r.RecordingID,
		ContentType: r.ContentType, Created: time.UnixMilli(r.createdAt), Key: target.key,
	})

	return h, errors.Join(err, audio.Close())
}
