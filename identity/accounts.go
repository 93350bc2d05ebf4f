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
	ID     string // "" to generate one
	Name   string
	Domain string
	Parent string // id, name or domain; "" for a root account

	TimeZone string // IANA name; "" for UTC

	By       *Principal // whose rights bound the names; nil for the operator and for a feed
	FromFeed bool       // a feed follows its platform's accounts
}

// CreateAccount creates an account. Its id, name and domain must not be the id, name or
// domain of another account, because each of them identifies one account.
func (d *Directory) CreateAccount(ctx context.Context, n NewAccount) (Account, error) {
	var bad fieldProblems
	n.check("", &bad)
	if err := bad.asError("Invalid account"); err != nil {
		return Account{}, err
	}

	account := buildAccount(n, d.cfg.storedNow())
	entry := d.audit.Entry(ctx, audit.AccountCreate, "", "account:"+account.ID)
	err := d.changes.auditedTx(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		// Read here: memory may lack what another node has just created.
		accounts, err := selectAccounts(ctx, tx)
		if err != nil {
			return err
		}

		tree, _ := buildTree(accounts)
		if n.Parent != "" {
			parent, err := resolveAccount(ctx, tx, n.Parent)
			if fault.KindOf(err) == fault.KindNotFound {
				return fault.InvalidField("parent", "unknown_account", "unknown account "+quote(n.Parent))
			}
			if err != nil {
				return err
			}

			account.ParentID = parent.ID
			if err := tree.checkLimits(tree.nodesByID[parent.ID], nil, d.cfg.AccountsPerTenant); err != nil {
				return err
			}
		}

		chooser := newNameChooser(n.By, n.FromFeed)
		d.cfg.checkNames(tree, chooser, account, Account{}, n.ID != "", &bad)
		if err := bad.asError("Invalid account"); err != nil {
			return err
		}

		entry.AccountID = account.auditAccountID()
		if err := insertAccount(ctx, tx, account, chooser); err != nil {
			return err
		}

		return d.checkNotDeleted(ctx, tx, account)
	})

	return account, err
}

// auditAccountID returns the account that has the audit entries of a's creation and
// deletion: its parent, which outlives a, or a itself if it is a root.
func (a Account) auditAccountID() string { return cmp.Or(a.ParentID, a.ID) }

// buildAccount returns the account to create for a validated n, without its parent.
func buildAccount(n NewAccount, now time.Time) Account {
	id := n.ID
	if id == "" {
		id = sqldb.NewID()
	}
	return Account{ID: id, Name: n.Name, Domain: strings.ToLower(n.Domain), TimeZone: n.TimeZone, CreatedAt: now}
}

// conflictIfExists returns conflict if the query returns a row.
func conflictIfExists(ctx context.Context, tx *sql.Tx, conflict *fault.Error, operation, query string,
	args ...any) error {
	var found bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (`+query+`)`, args...).Scan(&found); err != nil {
		return sqldb.Wrap(err, operation)
	}
	if found {
		return conflict
	}
	return nil
}

// checkAccountUnique returns fault.KindConflict if another account uses the id, name or
// domain of a as its id, name or domain.
func checkAccountUnique(ctx context.Context, tx *sql.Tx, a Account) error {
	return conflictIfExists(ctx, tx, fault.Conflict("The id, name or domain is taken by another account"),
		"reading accounts",
		`SELECT 1 FROM identity_accounts WHERE id <> $1 AND (id IN ($2, $3) OR name IN ($1, $2, $3) OR domain IN ($4, $5, $3))`,
		a.ID, a.Name, a.Domain, strings.ToLower(a.ID), strings.ToLower(a.Name))
}

// AccountUpdate has the new values of an account's fields.
type AccountUpdate struct {
	Name   string
	Domain string
	Parent string // id; "" for a root account
	// KeepParent leaves the account where it stands, and Parent is not read: the caller may know an older one.
	KeepParent bool
	IfMatch    string // If-Match header; "" for an unconditional update

	TimeZone string // IANA name; "" to keep the stored one

	By       *Principal // as in NewAccount
	FromFeed bool
}

// UpdateAccount renames an account, changes its domain and moves it with all accounts
// below it. The rules of CreateAccount apply. The hashes of phones' passwords include
// the domain, so these passwords must be set again after a change of the domain.
func (d *Directory) UpdateAccount(ctx context.Context, id string, u AccountUpdate) (Account, error) {
	var bad fieldProblems
	(&NewAccount{ID: id, Name: u.Name, Domain: u.Domain, TimeZone: u.TimeZone}).check("", &bad)
	if err := bad.asError("Invalid account"); err != nil {
		return Account{}, err
	}

	var account Account
	entry := d.audit.Entry(ctx, audit.AccountUpdate, "", "account:"+id)
	err := d.changes.auditedTx(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		accounts, err := selectAccounts(ctx, tx)
		if err != nil {
			return err
		}

		tree, _ := buildTree(accounts)
		var found bool
		account, found = tree.Account(id)
		if !found {
			return fault.NotFound("There is no account %s", quote(id))
		}
		if err := entitytag.Require(u.IfMatch, account.ETag()); err != nil {
			return err
		}

		if u.KeepParent {
			u.Parent = account.ParentID
		}

		_, known := tree.Account(u.Parent)
		if u.Parent != "" && !known {
			return fault.InvalidField("parent_id", "unknown_account", "unknown account "+quote(u.Parent))
		}
		if tree.Contains(id, u.Parent) {
			return fault.InvalidField("parent_id", codeInvalid, "an account cannot be below itself")
		}

		if u.Parent != account.ParentID {
			if err := tree.checkLimits(tree.nodesByID[u.Parent], tree.nodesByID[id],
				d.cfg.AccountsPerTenant); err != nil {
				return err
			}
		}

		old := account
		account.Name, account.Domain, account.ParentID = u.Name, strings.ToLower(u.Domain), u.Parent
		account.TimeZone = cmp.Or(u.TimeZone, account.TimeZone)

		if err := d.checkRenamed(ctx, tx, tree, newNameChooser(u.By, u.FromFeed), account, old); err != nil {
			return err
		}
		if err := checkAccountUnique(ctx, tx, account); err != nil {
			return err
		}

		_, err = tx.ExecContext(ctx,
			`UPDATE identity_accounts SET name = $2, domain = $3, parent_id = $4, time_zone = $5 WHERE id = $1`,
			id, account.Name, account.Domain, sql.NullString{String: account.ParentID, Valid: account.ParentID != ""},
			account.TimeZone)
		entry.AccountID = account.auditAccountID()

		return sqldb.Wrap(err, "storing an account")
	})

	return account, err
}

// checkRenamed checks the names that differ from those of old, and stores who chose them.
func (d *Directory) checkRenamed(ctx context.Context, tx *sql.Tx, tree *Tree, chooser nameChooser,
	account, old Account) error {
	if account.Name == old.Name && account.Domain == old.Domain {
		return nil
	}

	var bad fieldProblems
	d.cfg.checkNames(tree, chooser, account, old, false, &bad)
	if err := bad.asError("Invalid account"); err != nil {
		return err
	}
	if err := d.checkNotDeleted(ctx, tx, account); err != nil {
		return err
	}

	_, err := tx.ExecContext(ctx, `UPDATE identity_accounts SET named_by = $2 WHERE id = $1`, account.ID, string(chooser))
	return sqldb.Wrap(err, "storing who named an account")
}

// insertAccount stores an account whose parent is stored already.
func insertAccount(ctx context.Context, tx *sql.Tx, a Account, chooser nameChooser) error {
	if err := checkAccountUnique(ctx, tx, a); err != nil {
		return err
	}

	err := conflictIfExists(ctx, tx, fault.Conflict("The id is taken by another account"), "reading accounts",
		`SELECT 1 FROM identity_accounts WHERE id = $1`, a.ID)
	if err != nil {
		return err
	}

	err = conflictIfExists(ctx, tx, fault.Conflict("The id was that of a deleted account, and ids are not given again"),
		"reading deleted accounts",
		`SELECT 1 FROM identity_deleted_accounts WHERE id = $1`, a.ID)
	if err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx,
		`INSERT INTO identity_accounts (id, name, domain, parent_id, time_zone, created_at, named_by) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		a.ID, a.Name, a.Domain, sql.NullString{String: a.ParentID, Valid: a.ParentID != ""}, a.TimeZone,
		a.CreatedAt.UnixMilli(), string(chooser))

	return sqldb.Wrap(err, "storing an account")
}

// ListAccounts lists every account, by id.
func (d *Directory) ListAccounts(ctx context.Context) ([]Account, error) {
	return selectAccounts(ctx, d.db)
}

// DeleteAccount deletes an account that has no accounts below it, its users and its API
// keys, and ends their tokens. Its data in other packages is purged later (Purge). It
// returns the account's id. ifMatch is the request's If-Match header, "" for none.
// Returns fault.KindPrecondition if it does not match.
func (d *Directory) DeleteAccount(ctx context.Context, ref, ifMatch string) (id string, err error) {
	return d.removeAccount(ctx, ref, ifMatch, false)
}

// DeleteAndPurgeAccount is DeleteAccount, and the next run of Purge deletes the account's
// data without waiting for the end of its retention.
func (d *Directory) DeleteAndPurgeAccount(ctx context.Context, ref, ifMatch string) (id string, err error) {
	return d.removeAccount(ctx, ref, ifMatch, true)
}

func (d *Directory) removeAccount(ctx context.Context, ref, ifMatch string, purgeNow bool) (id string, err error) {
	var account Account
	entry := d.audit.Entry(ctx, audit.AccountDelete, "", "")
	err = d.changes.auditedTx(ctx, changeBoth, &entry, func(tx *sql.Tx, rev int64) error {
		var err error
		account, err = resolveAccount(ctx, tx, ref)
		if err != nil {
			return err
		}

		if err := entitytag.Require(ifMatch, account.ETag()); err != nil {
			return err
		}
		if err := checkNoChildren(ctx, tx, account); err != nil {
			return err
		}

		users, err := selectUsers(ctx, tx, account.ID)
		if err != nil {
			return err
		}

		// The users' rows go with the account's; these revocations end their tokens in the memory of every node.
		for _, user := range users {
			if err := revokeUser(ctx, tx, rev, user.ID, d.cfg.Now()); err != nil {
				return err
			}
		}

		// The next two tables do not refer to the account's row, so that nothing deletes theirs with it.
		_, err = tx.ExecContext(ctx, `DELETE FROM identity_oidc_subjects WHERE account_id = $1`, account.ID)
		if err != nil {
			return sqldb.Wrap(err, "deleting a provider's users")
		}

		_, err = tx.ExecContext(ctx, `DELETE FROM identity_filters WHERE account_id = $1`, account.ID)
		if err != nil {
			return sqldb.Wrap(err, "deleting stored filters")
		}

		_, err = tx.ExecContext(ctx, `DELETE FROM identity_accounts WHERE id = $1`, account.ID)
		if err != nil {
			return sqldb.Wrap(err, "deleting an account")
		}

		_, err = tx.ExecContext(ctx,
			`INSERT INTO identity_deleted_accounts (id, audited_by, deleted_at, purge_now, lease_until, name, domain)
			VALUES ($1, $2, $3, $4, 0, $5, $6)`, account.ID, account.auditAccountID(), d.cfg.storedNow().UnixMilli(),
			purgeNow,
			account.Name, account.Domain)
		entry.AccountID, entry.Target = account.auditAccountID(), "account:"+account.ID

		return sqldb.Wrap(err, "storing a deleted account's id")
	})

	return account.ID, err
}

// checkNoChildren returns fault.KindConflict if there are accounts below the account.
func checkNoChildren(ctx context.Context, tx *sql.Tx, account Account) error {
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

func selectAccounts(ctx context.Context, db sqldb.Runner) ([]Account, error) {
	rows, err := db.QueryContext(ctx, `SELECT `+accountColumns+` FROM identity_accounts ORDER BY id`)
	return sqldb.Collect(rows, err, "reading accounts", scanAccount)
}

// resolveClaimedAccount is resolveAccount for a provider's claim, which names an account by
// its name only if the operator chose it: a tenant could take the name that a claim will
// have. Ids and domains are the operator's, or below the tenant's own.
func resolveClaimedAccount(ctx context.Context, db sqldb.Runner, ref string) (Account, error) {
	row := db.QueryRowContext(ctx, `SELECT `+accountColumns+` FROM identity_accounts
		WHERE id = $1 OR domain = $2 OR name = $1 AND named_by NOT LIKE $3
		ORDER BY CASE WHEN id = $1 THEN 0 WHEN domain = $2 THEN 1 ELSE 2 END LIMIT 1`, ref, strings.ToLower(ref),
		chooserTenantPrefix+"%")
	return sqldb.Find(row, fault.NotFound("There is no account %s", quote(ref)), "reading an account", scanAccount)
}

// resolveAccount finds an account by id, name or domain in the database, because the tree
// in memory may lack the latest changes of other processes.
func resolveAccount(ctx context.Context, db sqldb.Runner, ref string) (Account, error) {
	row := db.QueryRowContext(ctx,
		`SELECT `+accountColumns+` FROM identity_accounts WHERE id = $1 OR name = $1 OR domain = $2
		ORDER BY CASE WHEN id = $1 THEN 0 WHEN name = $1 THEN 1 ELSE 2 END LIMIT 1`, ref, strings.ToLower(ref))
	return sqldb.Find(row, fault.NotFound("There is no account %s", quote(ref)), "reading an account", scanAccount)
}
