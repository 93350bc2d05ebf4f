package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	r := resealer{rows: s.rows, store: s.objects.store, seals: s.seals, log: s.log, report: progress}
	err := r.run(ctx, accountID)
	return r.progress, err
}

// resealer is one run of Reseal.
type resealer struct {
	rows  rows
	store Store
	seals *seals
	log   *slog.Logger

	progress Progress
	report   func(Progress) // after each recording
}

func (z *resealer) run(ctx context.Context, accountID string) error {
	accounts, err := z.rows.sealedAccounts(ctx, accountID)
	if err != nil {
		return err
	}

	current := make(map[string]encryption.Sealing, len(accounts))
	for _, account := range accounts {
		current[account], err = z.seals.keys.Current(ctx, account)
		if err != nil {
			return fmt.Errorf("finding the newest key of account %s: %w", account, err)
		}

		n, err := z.rows.countOutdated(ctx, account, current[account])
		if err != nil {
			return err
		}

		z.progress.Total += n
	}

	for _, account := range accounts {
		if err := z.resealAccount(ctx, account, current[account]); err != nil {
			return err
		}
	}

	if z.progress.Failed > 0 {
		return fault.Internal(nil,
			fmt.Sprintf("%d of %d recordings could not be moved to the newest key", z.progress.Failed, z.progress.Total))
	}

	return nil
}

const resealPageSize = 100

func (z *resealer) resealAccount(ctx context.Context, account string, current encryption.Sealing) error {
	target, err := z.seals.newSealer(current)
	if err != nil {
		return err
	}
	defer target.key.Root.Wipe()

	// By id and not from the beginning: one that failed is not tried again and again.
	for after := ""; ; {
		page, err := z.rows.selectRows(ctx, `WHERE account_id = $1 AND recording_id > $2 AND encrypted
			AND (key_version <> $3 OR algorithm <> $4) ORDER BY recording_id LIMIT $5`,
			account, after, current.Key.Version, current.Algorithm, resealPageSize)
		if err != nil || len(page) == 0 {
			return err
		}

		for _, r := range page {
			err := z.resealRecording(ctx, r, target)
			if err == nil {
				z.progress.Done++
			} else if ctx.Err() != nil {
				return ctx.Err()
			} else {
				z.progress.Failed++
				z.log.ErrorContext(ctx, "recording reseal failed",
					"account_id", account, "recording_id", r.RecordingID, "error", err)
			}

			after = r.RecordingID
			z.report(z.progress)
		}
	}
}

// resealRecording writes a new object of the recording, updates the row to refer to it,
// and then deletes the old object.
func (z *resealer) resealRecording(ctx context.Context, r *row, target *recordingSealer) error {
	object, err := z.store.Open(ctx, r.object)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }() // opened for reading only

	updated := *r
	updated.object = objectName(r.AccountID, r.RecordingID, true)
	updated.StoredSize, err = z.store.Put(ctx, updated.object, func(w io.Writer) error {
		h, err := z.reencrypt(ctx, w, object, r, target)
		if err == nil {
			updated.setKeyFields(h)
		}
		return err
	})
	if err != nil {
		return err
	}

	replaced, err := z.rows.replaceObject(ctx, r, &updated)
	if err != nil {
		return err // the update may have committed: Sweep deletes the object without a row
	}

	if !replaced { // deleted or re-encrypted by another process meanwhile
		return z.store.Delete(ctx, updated.object)
	}

	return z.store.Delete(ctx, r.object)
}

// reencrypt writes the recording in object to w, encrypted with target.
func (z *resealer) reencrypt(ctx context.Context, w io.Writer, object io.ReadSeeker, r *row,
	target *recordingSealer) (*envelope.Header, error) {
	// The body does not depend on the account's key, so another key needs only another header.
	if r.Algorithm == target.suite.String() {
		return envelope.Rewrap(w, object, r.expected(), z.seals.finder(ctx, r), target.key)
	}

	audio, err := envelope.NewReader(object, r.expected(), z.seals.finder(ctx, r))
	if err != nil {
		return nil, err
	}

	h, _, err := envelope.Seal(w, audio, envelope.Params{
		Suite: target.suite, AccountID: r.AccountID, RecordingID: r.RecordingID,
		ContentType: r.ContentType, Created: time.UnixMilli(r.createdAt), Key: target.key,
	})

	return h, errors.Join(err, audio.Close())
}
