package webhook

import (
	"context"
	"database/sql"
	"time"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Create creates a webhook of the account, which gets the events from now on. secret is
// the generated signing secret, "" if the config has one.
func (s *Service) Create(ctx context.Context, accountID string, c Config) (created Webhook, secret string, err error) {
	c, err = s.validateConfig(ctx, accountID, c)
	if err != nil {
		return Webhook{}, "", err
	}

	key := newKey()
	if c.Secret == "" {
		secret = formatSecret(key)
	} else {
		key, err = parseSecret(c.Secret)
		if err != nil {
			return Webhook{}, "", err
		}
	}

	// In the precision that is stored, so that the ETag is that of the row.
	now := time.UnixMilli(time.Now().UnixMilli())
	r := webhookRow{Webhook: Webhook{ID: sqldb.NewID(), AccountID: accountID, URL: c.URL, Filters: c.Filters,
		Format: c.Format, CreatedAt: now, UpdatedAt: now, Status: StatusActive}}
	r.sealedKey, err = s.keys.Seal(key, webhooksTable, accountID, r.ID)
	if err != nil {
		return Webhook{}, "", err
	}

	// Before the row is stored: what is written meanwhile is delivered.
	positions, err := endPositions(ctx, s.events)
	if err != nil {
		return Webhook{}, "", err
	}

	err = s.change(ctx, audit.WebhookCreate, accountID, r.ID, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM webhooks WHERE account_id = $1`,
			accountID).Scan(&n); err != nil {
			return sqldb.Wrap(err, "counting the webhooks")
		}
		if n >= s.settings.MaxPerAccount {
			return fault.Conflict("The account has %d webhooks, the most that webhook.max_per_account allows", n)
		}
		if err := insertRow(ctx, tx, r); err != nil {
			return err
		}

		return upsertPositions(ctx, tx, r.ID, r.positionGeneration, positions)
	})

	return r.Webhook, secret, err
}

// Update replaces the config of a webhook. It keeps the delivery positions, resets the
// back-off and does not resume a paused webhook. ifMatch is the request's If-Match
// header, "" for none. Returns fault.KindPrecondition when it does not match.
func (s *Service) Update(ctx context.Context, accountID, id string, c Config, ifMatch string) (Webhook, error) {
	c, err := s.validateConfig(ctx, accountID, c)
	if err != nil {
		return Webhook{}, err
	}

	var r webhookRow
	err = s.change(ctx, audit.WebhookUpdate, accountID, id, func(tx *sql.Tx) (err error) {
		r, err = findIfMatch(ctx, tx, accountID, id, ifMatch)
		if err != nil {
			return err
		}

		if c.Secret != "" {
			key, err := parseSecret(c.Secret)
			if err != nil {
				return err
			}

			r.sealedKey, err = s.keys.Seal(key, webhooksTable, accountID, id)
			if err != nil {
				return err
			}
		}

		r.URL, r.Filters, r.Format, r.UpdatedAt = c.URL, c.Filters, c.Format, nextUpdatedAt(r.UpdatedAt)
		if err := updateRow(ctx, tx, r); err != nil {
			return err
		}

		r, err = selectRow(ctx, tx, accountID, id)
		return err
	})

	return r.Webhook, err
}

// nextUpdatedAt returns the time of an update: now, but at least a millisecond, the stored
// precision, after the last update, so that each update has another ETag.
func nextUpdatedAt(last time.Time) time.Time {
	now, earliest := time.Now(), last.Add(time.Millisecond)
	if now.Before(earliest) {
		return earliest
	}
	return now
}

// Find returns a webhook of the account.
func (s *Service) Find(ctx context.Context, accountID, id string) (Webhook, error) {
	r, err := selectRow(ctx, s.db, accountID, id)
	return r.Webhook, err
}

// List returns the webhooks of the account, the oldest first.
func (s *Service) List(ctx context.Context, accountID string) ([]Webhook, error) {
	rows, err := selectRows(ctx, s.db, accountID)
	webhooks := make([]Webhook, len(rows))
	for i := range rows {
		webhooks[i] = rows[i].Webhook
	}
	return webhooks, err
}

// Delete deletes a webhook of the account. ifMatch is that of Update.
func (s *Service) Delete(ctx context.Context, accountID, id, ifMatch string) error {
	return s.change(ctx, audit.WebhookDelete, accountID, id, func(tx *sql.Tx) error {
		_, err := findIfMatch(ctx, tx, accountID, id, ifMatch)
		if err != nil {
			return err
		}
		return deleteRow(ctx, tx, id)
	})
}

// findIfMatch returns a webhook of the account. Returns fault.KindPrecondition if it does
// not match ifMatch.
func findIfMatch(ctx context.Context, tx sqldb.Runner, accountID, id, ifMatch string) (webhookRow, error) {
	r, err := selectRow(ctx, tx, accountID, id)
	if err != nil {
		return webhookRow{}, err
	}
	return r, entitytag.Require(ifMatch, r.ETag())
}

// Retry ends a pause and the back-off of a webhook. The delivery resumes where it
// stopped or, if since is not 0, with all events that have a later id, including those
// delivered before. Returns fault.KindGone if since was never in the log or was deleted
// by retention.
func (s *Service) Retry(ctx context.Context, accountID, id string, since event.ID) (Webhook, error) {
	_, err := s.Find(ctx, accountID, id)
	if err != nil {
		return Webhook{}, err
	}

	var positions []deliveryPosition
	if since != 0 {
		positions, err = positionsAfter(ctx, s.events, since)
		if err != nil {
			return Webhook{}, err
		}
	}

	var r webhookRow
	err = s.change(ctx, audit.WebhookUpdate, accountID, id, func(tx *sql.Tx) (err error) {
		_, err = selectRow(ctx, tx, accountID, id)
		if err != nil {
			return err
		}

		if err := resetDelivery(ctx, tx, id, positions, since != 0); err != nil {
			return err
		}

		r, err = selectRow(ctx, tx, accountID, id)
		return err
	})

	return r.Webhook, err
}

// PurgeAccount deletes the webhooks of a deleted account. Their deliveries stopped when
// the account was deleted.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	err = s.db.Tx(ctx, func(tx *sql.Tx) (err error) {
		n, err = sqldb.Exec(ctx, tx, `DELETE FROM webhooks WHERE account_id = $1`, accountID)
		if err != nil || n == 0 {
			return sqldb.Wrap(err, "purging webhooks")
		}
		return incrementRevision(ctx, tx)
	})
	return n, err
}

// change runs fn in a transaction that also stores the audit entry and increments the
// revision that nodes poll.
func (s *Service) change(ctx context.Context, action audit.Action, accountID, id string,
	fn func(tx *sql.Tx) error) error {
	entry := s.audit.Entry(ctx, action, accountID, "webhook:"+id)
	return audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return incrementRevision(ctx, tx)
	})
}
