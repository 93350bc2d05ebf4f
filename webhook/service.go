package webhook

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"time"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/netguard"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Filters checks the filters of webhooks as those of the channel.
type Filters interface {
	CheckFilter(ctx context.Context, accountID string, f identity.Filter) (identity.Filter, error)
}

// Deps are what a Service works with.
type Deps struct {
	DB      *sqldb.DB
	Keys    *masterkey.Keyring
	Audit   *audit.Log
	Filters Filters // nil in commands, which create and update nothing
	Topic   Topic   // nil in commands
}

// Service keeps the webhooks of all accounts. It is safe for concurrent use.
type Service struct {
	settings Settings
	db       *sqldb.DB
	keys     *masterkey.Keyring
	audit    *audit.Log
	filters  Filters
	topic    Topic
}

// New brings the tables up to date and makes sure that every secret in them can be
// opened: without the master key it refuses to start.
func New(ctx context.Context, settings Settings, deps Deps) (*Service, error) {
	if err := setting.Validate("webhook", settings); err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := deps.DB.Migrate(ctx, "webhook", files); err != nil {
		return nil, err
	}
	s := &Service{settings: settings, db: deps.DB, keys: deps.Keys, audit: deps.Audit, filters: deps.Filters, topic: deps.Topic}
	return s, s.Secrets().Require(ctx)
}

// Secrets returns the stored secrets.
func (s *Service) Secrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keys, Name: table, Key: []string{"account_id", "id"}, Secret: "sealed"}
}

func openKey(keys *masterkey.Keyring, r *row) ([]byte, error) {
	return keys.Unseal(r.sealed, table, r.AccountID, r.ID)
}

// Invalid is the message of requests whose fields are refused.
const Invalid = "Invalid webhook"

// maxWebhooks bounds the webhooks of an account.
const maxWebhooks = 100

// Create makes a webhook of the account, which gets the events from now on. secret is
// the signing secret if it was made here, "" if the config has one.
func (s *Service) Create(ctx context.Context, accountID string, c Config) (made Webhook, secret string, err error) {
	c, err = s.check(ctx, accountID, c)
	if err != nil {
		return Webhook{}, "", err
	}
	key := newKey()
	if c.Secret == "" {
		secret = secretOf(key)
	} else if key, err = parseSecret(c.Secret); err != nil {
		return Webhook{}, "", err
	}
	now := time.UnixMilli(time.Now().UnixMilli())
	r := row{Webhook: Webhook{ID: newID(), AccountID: accountID, URL: c.URL, Filters: c.Filters, Format: c.Format,
		CreatedAt: now, UpdatedAt: now, Status: StatusActive}}
	if r.sealed, err = s.keys.Seal(key, table, accountID, r.ID); err != nil {
		return Webhook{}, "", err
	}
	at, err := endPositions(ctx, s.topic)
	if err != nil {
		return Webhook{}, "", err
	}
	err = s.change(ctx, audit.WebhookCreate, accountID, r.ID, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM webhooks WHERE account_id = $1`, accountID).Scan(&n); err != nil {
			return sqldb.Wrap(err, "counting the webhooks")
		}
		if n >= maxWebhooks {
			return fault.Conflict("The account has %d webhooks already, the most there can be", n)
		}
		if err := create(ctx, tx, r); err != nil {
			return err
		}
		return putPositions(ctx, tx, r.ID, r.seek, at)
	})
	return r.Webhook, secret, err
}

// Update replaces what an administrator sets, at the same positions. After failures
// the back-off begins anew; a pause stays. ifMatch is the request's If-Match header, ""
// for none. Returns fault.KindPrecondition when it does not match.
func (s *Service) Update(ctx context.Context, accountID, id string, c Config, ifMatch string) (Webhook, error) {
	c, err := s.check(ctx, accountID, c)
	if err != nil {
		return Webhook{}, err
	}
	var r row
	err = s.change(ctx, audit.WebhookUpdate, accountID, id, func(tx *sql.Tx) (err error) {
		if r, err = findMatch(ctx, tx, accountID, id, ifMatch); err != nil {
			return err
		}
		if c.Secret != "" {
			key, err := parseSecret(c.Secret)
			if err != nil {
				return err
			}
			if r.sealed, err = s.keys.Seal(key, table, accountID, id); err != nil {
				return err
			}
		}
		r.URL, r.Filters, r.Format, r.UpdatedAt = c.URL, c.Filters, c.Format, nextUpdate(r.UpdatedAt)
		if err := update(ctx, tx, r); err != nil {
			return err
		}
		r, err = find(ctx, tx, accountID, id)
		return err
	})
	return r.Webhook, err
}

// Find returns a webhook of the account.
func (s *Service) Find(ctx context.Context, accountID, id string) (Webhook, error) {
	r, err := find(ctx, s.db, accountID, id)
	return r.Webhook, err
}

// List returns the webhooks of the account, the oldest first.
func (s *Service) List(ctx context.Context, accountID string) ([]Webhook, error) {
	rows, err := list(ctx, s.db, accountID)
	all := make([]Webhook, len(rows))
	for i := range rows {
		all[i] = rows[i].Webhook
	}
	return all, err
}

// Delete removes a webhook of the account. ifMatch is that of Update.
func (s *Service) Delete(ctx context.Context, accountID, id, ifMatch string) error {
	return s.change(ctx, audit.WebhookDelete, accountID, id, func(tx *sql.Tx) error {
		if _, err := findMatch(ctx, tx, accountID, id, ifMatch); err != nil {
			return err
		}
		return remove(ctx, tx, id)
	})
}

// findMatch returns a webhook that meets a request's If-Match.
func findMatch(ctx context.Context, tx sqldb.Runner, accountID, id, ifMatch string) (row, error) {
	r, err := find(ctx, tx, accountID, id)
	if err != nil {
		return row{}, err
	}
	return r, entitytag.Require(ifMatch, r.ETag())
}

// nextUpdate returns the time of an update: now, and always later than the last, in
// the milliseconds that are stored, so that each update has an ETag of its own.
func nextUpdate(last time.Time) time.Time {
	now, earliest := time.Now(), last.Add(time.Millisecond)
	if now.Before(earliest) {
		return earliest
	}
	return now
}

// Retry ends a pause and the back-off of a webhook. It goes on where it was or, with
// since, with the events whose id is later, whether they were delivered or not. Returns
// fault.KindGone when since is not in the log, or no longer.
func (s *Service) Retry(ctx context.Context, accountID, id string, since event.ID) (Webhook, error) {
	if _, err := s.Find(ctx, accountID, id); err != nil {
		return Webhook{}, err
	}
	var at []position
	if since != 0 {
		var err error
		if at, err = positionsAfter(ctx, s.topic, since); err != nil {
			return Webhook{}, err
		}
	}
	var r row
	err := s.change(ctx, audit.WebhookUpdate, accountID, id, func(tx *sql.Tx) (err error) {
		if _, err := find(ctx, tx, accountID, id); err != nil {
			return err
		}
		if err := restart(ctx, tx, id, at, since != 0); err != nil {
			return err
		}
		r, err = find(ctx, tx, accountID, id)
		return err
	})
	return r.Webhook, err
}

// PurgeAccount deletes the webhooks of a deleted account, which get no more events
// since the deletion.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	err = s.db.Tx(ctx, func(tx *sql.Tx) (err error) {
		if n, err = sqldb.Exec(ctx, tx, `DELETE FROM webhooks WHERE account_id = $1`, accountID); err != nil || n == 0 {
			return sqldb.Wrap(err, "purging webhooks")
		}
		return raiseRevision(ctx, tx)
	})
	return n, err
}

// change makes a change with its audit entry and tells all nodes.
func (s *Service) change(ctx context.Context, action audit.Action, accountID, id string, do func(tx *sql.Tx) error) error {
	entry := s.audit.Entry(ctx, action, accountID, "webhook:"+id)
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		if err := raiseRevision(ctx, tx); err != nil {
			return err
		}
		return s.audit.Insert(ctx, tx, entry)
	})
	if err == nil {
		s.audit.Committed(ctx, entry)
	}
	return err
}

// check returns the config with its defaults. Returns fault.KindInvalid, which names
// every field at fault.
func (s *Service) check(ctx context.Context, accountID string, c Config) (Config, error) {
	var faults []fault.Field
	if code, text := netguard.HTTP.Check(c.URL, netguard.AllowsLoopback(s.settings.AllowNetworks)); code != "" {
		faults = append(faults, fault.Field{Field: "url", Code: code, Message: text})
	}
	switch c.Format {
	case "":
		c.Format = FormatTrunkline
	case FormatTrunkline, FormatCloudEvents:
	default:
		faults = append(faults, fault.Field{Field: "format", Code: "unsupported", Message: fmt.Sprintf("must be %s or %s", FormatTrunkline, FormatCloudEvents)})
	}
	if c.Secret != "" {
		if _, err := parseSecret(c.Secret); err != nil {
			faults = append(faults, fault.Field{Field: "secret", Code: "invalid", Message: err.Error()})
		}
	}
	distinct, err := s.filters.CheckFilter(ctx, accountID, c.Filters)
	if fault.KindOf(err) == fault.KindInvalid {
		for _, f := range fault.As(err).Fields {
			f.Field = "filters." + f.Field
			faults = append(faults, f)
		}
	} else if err != nil {
		return Config{}, err
	}
	if len(faults) > 0 {
		return Config{}, fault.Invalid(Invalid, faults...)
	}
	c.Filters = distinct
	return c, nil
}

// newID returns a random id.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
