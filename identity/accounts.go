package identity

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// NewAccount has the fields of an account to create.
type NewAccount struct {
	ID     string // generated if empty
	Name   string
	Domain string
	Parent string // id, name or domain; "": a root

	TimeZone string // IANA name; "": UTC
}

// CreateAccount makes an account. Its id, name and domain must not be the id,
// name or domain of another: each of them names one account.
func (s *Service) CreateAccount(ctx context.Context, n NewAccount) (Account, error) {
	var bad problems
	n.check("", &bad)
	if err := bad.fault("Invalid account"); err != nil {
		return Account{}, err
	}
	account := s.accountOf(n)
	entry := s.audit.Entry(ctx, audit.AccountCreate, "", "account:"+account.ID)
	err := s.auditedChange(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		if n.Parent != "" {
			parent, err := resolve(ctx, tx, n.Parent)
			if fault.KindOf(err) == fault.KindNotFound {
				return fault.InvalidField("parent", "unknown_account", "unknown account "+quote(n.Parent))
			}
			if err != nil {
				return err
			}
			account.ParentID = parent.ID
		}
		entry.AccountID = account.auditedBy()
		return insertAccount(ctx, tx, account)
	})
	return account, err
}

// auditedBy returns the account of a's audit entries of creation and deletion: its
// parent, which outlives a, or a itself if it is a root.
func (a Account) auditedBy() string { return cmp.Or(a.ParentID, a.ID) }

// accountOf returns the account of a checked n, without its parent.
func (s *Service) accountOf(n NewAccount) Account {
	id := n.ID
	if id == "" {
		id = sqldb.NewID()
	}
	return Account{ID: id, Name: n.Name, Domain: strings.ToLower(n.Domain), TimeZone: n.TimeZone, CreatedAt: s.now()}
}

// now returns the time as it is stored, in milliseconds.
func (s *Service) now() time.Time { return time.UnixMilli(s.cfg.Now().UnixMilli()) }

// refuseIf returns the conflict if a query has a row.
func refuseIf(ctx context.Context, tx *sql.Tx, conflict *fault.Error, doing, query string, args ...any) error {
	var found bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (`+query+`)`, args...).Scan(&found); err != nil {
		return sqldb.Wrap(err, doing)
	}
	if found {
		return conflict
	}
	return nil
}

// refuseTaken returns a conflict when another account has the id, name or domain of
// a as its id, name or domain.
func refuseTaken(ctx context.Context, tx *sql.Tx, a Account) error {
	return refuseIf(ctx, tx, fault.Conflict("The id, name or domain is taken by another account"), "reading accounts",
		`SELECT 1 FROM identity_accounts WHERE id <> $1 AND (id IN ($2, $3) OR name IN ($1, $2, $3) OR domain IN ($4, $5, $3))`,
		a.ID, a.Name, a.Domain, strings.ToLower(a.ID), strings.ToLower(a.Name))
}

// AccountUpdate has the new values of an account's fields.
type AccountUpdate struct {
	Name    string
	Domain  string
	Parent  string // id; "": a root
	IfMatch string // If-Match header; "": unconditional

	TimeZone string // IANA name; "": unchanged
}

// UpdateAccount renames an account, changes its domain and moves it with everything
// below it. The rules of CreateAccount hold. The hashes of phones' passwords include
// the domain: after a change of domain they have to be set again.
func (s *Service) UpdateAccount(ctx context.Context, id string, u AccountUpdate) (Account, error) {
	var bad problems
	(&NewAccount{ID: id, Name: u.Name, Domain: u.Domain, TimeZone: u.TimeZone}).check("", &bad)
	if err := bad.fault("Invalid account"); err != nil {
		return Account{}, err
	}
	var account Account
	entry := s.audit.Entry(ctx, audit.AccountUpdate, "", "account:"+id)
	err := s.auditedChange(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		all, err := listAccounts(ctx, tx)
		if err != nil {
			return err
		}
		tree, _ := buildTree(all)
		var known bool
		if account, known = tree.Account(id); !known {
			return fault.NotFound("There is no account %s", quote(id))
		}
		if err := entitytag.Require(u.IfMatch, account.ETag()); err != nil {
			return err
		}
		if _, known := tree.Account(u.Parent); u.Parent != "" && !known {
			return fault.InvalidField("parent_id", "unknown_account", "unknown account "+quote(u.Parent))
		}
		if tree.Contains(id, u.Parent) {
			return fault.InvalidField("parent_id", codeInvalid, "an account cannot be below itself")
		}
		account.Name, account.Domain, account.ParentID = u.Name, strings.ToLower(u.Domain), u.Parent
		account.TimeZone = cmp.Or(u.TimeZone, account.TimeZone)
		if err := refuseTaken(ctx, tx, account); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE identity_accounts SET name = $2, domain = $3, parent_id = $4, time_zone = $5 WHERE id = $1`,
			id, account.Name, account.Domain, sql.NullString{String: account.ParentID, Valid: account.ParentID != ""}, account.TimeZone)
		entry.AccountID = account.auditedBy()
		return sqldb.Wrap(err, "storing an account")
	})
	return account, err
}

// insertAccount stores an account whose parent is stored already.
func insertAccount(ctx context.Context, tx *sql.Tx, a Account) error {
	if err := refuseTaken(ctx, tx, a); err != nil {
		return err
	}
	err := refuseIf(ctx, tx, fault.Conflict("The id is taken by another account"), "reading accounts",
		`SELECT 1 FROM identity_accounts WHERE id = $1`, a.ID)
	if err != nil {
		return err
	}
	err = refuseIf(ctx, tx, fault.Conflict("The id was that of a deleted account, and ids are not given again"), "reading deleted accounts",
		`SELECT 1 FROM identity_deleted_accounts WHERE id = $1`, a.ID)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO identity_accounts (id, name, domain, parent_id, time_zone, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		a.ID, a.Name, a.Domain, sql.NullString{String: a.ParentID, Valid: a.ParentID != ""}, a.TimeZone, a.CreatedAt.UnixMilli())
	return sqldb.Wrap(err, "storing an account")
}

// ListAccounts lists every account, by id.
func (s *Service) ListAccounts(ctx context.Context) ([]Account, error) {
	return listAccounts(ctx, s.db)
}

// DeleteAccount deletes an account that has no accounts below it, its users and its API
// keys, and ends their tokens. Its data in other packages is purged later (Purge). It
// returns the account's id. ifMatch is the request's If-Match header, "" for none.
// Returns fault.KindPrecondition if it does not match.
func (s *Service) DeleteAccount(ctx context.Context, ref, ifMatch string) (id string, err error) {
	return s.removeAccount(ctx, ref, ifMatch, false)
}

// DeleteAndPurgeAccount is DeleteAccount; a server then purges without waiting.
func (s *Service) DeleteAndPurgeAccount(ctx context.Context, ref, ifMatch string) (id string, err error) {
	return s.removeAccount(ctx, ref, ifMatch, true)
}

func (s *Service) removeAccount(ctx context.Context, ref, ifMatch string, purgeNow bool) (id string, err error) {
	var account Account
	entry := s.audit.Entry(ctx, audit.AccountDelete, "", "")
	err = s.auditedChange(ctx, changeBoth, &entry, func(tx *sql.Tx, rev int64) error {
		var err error
		if account, err = resolve(ctx, tx, ref); err != nil {
			return err
		}
		if err := entitytag.Require(ifMatch, account.ETag()); err != nil {
			return err
		}
		if err := refuseParent(ctx, tx, account); err != nil {
			return err
		}
		users, err := listUsers(ctx, tx, account.ID)
		if err != nil {
			return err
		}
		for _, user := range users {
			if err := endUser(ctx, tx, rev, user.ID, s.cfg.Now()); err != nil {
				return err
			}
		}
		// The provider can move its users to another account.
		_, err = tx.ExecContext(ctx, `DELETE FROM identity_oidc_users WHERE user_id IN (SELECT id FROM identity_users WHERE account_id = $1)`, account.ID)
		if err != nil {
			return sqldb.Wrap(err, "deleting a provider's users")
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM identity_accounts WHERE id = $1`, account.ID); err != nil {
			return sqldb.Wrap(err, "deleting an account")
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO identity_deleted_accounts (id, audited_by, deleted_at, purge_now, lease_until)
			VALUES ($1, $2, $3, $4, 0)`, account.ID, account.auditedBy(), s.now().UnixMilli(), purgeNow)
		entry.AccountID, entry.Target = account.auditedBy(), "account:"+account.ID
		return sqldb.Wrap(err, "noting a deleted account")
	})
	return account.ID, err
}

func refuseParent(ctx context.Context, tx *sql.Tx, account Account) error {
	var children int
	err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_accounts WHERE parent_id = $1`, account.ID).
		Scan(&children)
	if err != nil {
		return sqldb.Wrap(err, "reading accounts")
	}
	if children > 0 {
		return fault.Conflict("The account has %d accounts below it", children)
	}
	return nil
}

const accountColumns = `id, name, domain, COALESCE(parent_id, ''), time_zone, created_at`

func scanAccount(scan sqldb.ScanFunc) (Account, error) {
	var a Account
	var created int64
	err := scan(&a.ID, &a.Name, &a.Domain, &a.ParentID, &a.TimeZone, &created)
	a.CreatedAt = time.UnixMilli(created)
	return a, err
}

func listAccounts(ctx context.Context, db sqldb.Runner) ([]Account, error) {
	rows, err := db.QueryContext(ctx, `SELECT `+accountColumns+` FROM identity_accounts ORDER BY id`)
	return sqldb.Collect(rows, err, "reading accounts", scanAccount)
}

// resolve finds an account by id, name or domain in the database, which has the latest
// changes of other processes, unlike memory.
func resolve(ctx context.Context, db sqldb.Runner, ref string) (Account, error) {
	row := db.QueryRowContext(ctx, `SELECT `+accountColumns+` FROM identity_accounts WHERE id = $1 OR name = $1 OR domain = $2
		ORDER BY CASE WHEN id = $1 THEN 0 WHEN name = $1 THEN 1 ELSE 2 END LIMIT 1`, ref, strings.ToLower(ref))
	return sqldb.Find(row, fault.NotFound("There is no account %s", quote(ref)), "reading an account", scanAccount)
}
