package identity

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// NewUser has the fields of a user to create.
type NewUser struct {
	Account    string // id, name or domain
	Username   string
	Password   string
	PresenceID string // extension; may be ""
	Role       Role   // "" for RoleUser
	Limits            // of the role
	// OIDCSubject is the user's "sub" at the OpenID Connect provider, for a user who logs
	// in there and has no Password.
	OIDCSubject string

	By *Principal // whose rights bound the user's; nil for the operator
}

// userColumns are the columns that scanUser reads. The query names the table u.
const userColumns = `u.id, u.account_id, u.username, COALESCE(u.presence_id, ''), CASE u.limited_role WHEN '' THEN u.role ELSE u.limited_role END, u.queue_ids, u.agent_ids,
	u.clicktocall_id, u.created_at, u.generation,
	COALESCE((SELECT o.subject FROM identity_oidc_subjects o WHERE o.user_id = u.id), '')`

// scanUser scans a row with the columns of first, then userColumns.
func scanUser(scan sqldb.ScanFunc, first ...any) (User, error) {
	var u User
	var created int64
	err := scan(append(first, &u.ID, &u.AccountID, &u.Username, &u.PresenceID, &u.Role, (*idList)(&u.QueueIDs),
		(*idList)(&u.AgentIDs), &u.ClickToCallID, &created, &u.passwordGeneration, &u.OIDCSubject)...)
	u.CreatedAt = time.UnixMilli(created)
	return u, err
}

func findUserRow(row *sql.Row, unknown error) (User, error) {
	return sqldb.Find(row, unknown, "reading a user", func(scan sqldb.ScanFunc) (User, error) { return scanUser(scan) })
}

// CreateUser creates a user.
func (d *Directory) CreateUser(ctx context.Context, n NewUser) (User, error) {
	if n.Role == "" {
		n.Role = RoleUser
	}

	n.Limits = n.clean()
	if err := d.CheckCredentialGrant(n.By, n.Role); err != nil {
		return User{}, err
	}

	hash, err := d.checkNewUser(ctx, n)
	if err != nil {
		return User{}, err
	}

	user := buildUser(n, d.cfg.storedNow())
	entry := d.audit.Entry(ctx, audit.UserCreate, "", "user:"+user.ID)
	err = d.changes.auditedTx(ctx, changeRevocations, &entry, func(tx *sql.Tx, rev int64) error {
		account, err := resolveAccount(ctx, tx, n.Account)
		if err != nil {
			return err
		}

		user.AccountID = account.ID
		if err := checkQuota(ctx, tx, "identity_users", account.ID, "users", d.cfg.Accounts.Users,
			"account.users"); err != nil {
			return err
		}
		if err := insertUser(ctx, tx, rev, user, hash); err != nil {
			return err
		}

		if user.OIDCSubject != "" {
			err = bindSubject(ctx, tx, d.cfg.OIDC.Issuer, user)
		} else {
			err = d.phones.storePortalHA1(ctx, tx, user, account.Domain, n.Password)
		}

		entry.AccountID = account.ID
		return err
	})

	return user, err
}

// checkNewUser validates a new user and returns the hash of the password.
func (d *Directory) checkNewUser(ctx context.Context, n NewUser) (hash string, err error) {
	var bad fieldProblems
	if n.OIDCSubject != "" {
		n.checkNames("", &bad)
		bad.checkText("oidc_subject", n.OIDCSubject, maxSubjectLength, printable)
		if d.cfg.OIDC.Issuer == "" {
			bad.add("oidc_subject", "unsupported", "auth.oidc is not set")
		}
		if n.Password != "" {
			bad.add("password", "unsupported", "a user of the OpenID Connect provider has no password")
		}
		if err := bad.asError("Invalid user"); err != nil {
			return "", err
		}

		return d.passwords.hashRandom(ctx)
	}

	words, err := wordsOf(ctx, d.db, n.Account, n.Username)
	if err != nil {
		return "", err
	}

	n.check("", &bad)
	bad.checkStrength("password", n.Password, words)
	if err := bad.asError("Invalid user"); err != nil {
		return "", err
	}

	return d.passwords.Hash(ctx, n.Password)
}

// buildUser returns the user to create for a validated n, without the account.
func buildUser(n NewUser, now time.Time) User {
	return User{ID: sqldb.NewID(), Username: n.Username, PresenceID: n.PresenceID, Role: n.Role, Limits: n.Limits,
		OIDCSubject: n.OIDCSubject, CreatedAt: now}
}

// insertUser stores a user of an existing account in a change with the revision rev.
func insertUser(ctx context.Context, tx *sql.Tx, rev int64, u User, hash string) error {
	key := strings.ToLower(u.Username)
	var takenKey string
	err := tx.QueryRowContext(ctx, `SELECT username_key FROM identity_users
		WHERE account_id = $1 AND (username_key = $2 OR presence_id = $3) LIMIT 1`,
		u.AccountID, key, u.PresenceID).Scan(&takenKey)

	switch {
	case err == nil && takenKey == key:
		return fault.Conflict("The account has a user %s", quote(u.Username))
	case err == nil:
		return fault.Conflict("The presence_id is taken by another user of the account")
	case !errors.Is(err, sql.ErrNoRows):
		return sqldb.Wrap(err, "reading users")
	}

	_, err = tx.ExecContext(ctx, `INSERT INTO identity_users (id, account_id, username, username_key,
		password, role, presence_id, clicktocall_id, created_at, revision, limited_role, queue_ids, agent_ids)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		u.ID, u.AccountID, u.Username, key, hash, u.Role.inRoleColumn(),
		sql.NullString{String: u.PresenceID, Valid: u.PresenceID != ""}, u.ClickToCallID, u.CreatedAt.UnixMilli(), rev,
		u.Role.inLimitedRoleColumn(), idList(u.QueueIDs), idList(u.AgentIDs))
	if sqldb.IsUniqueViolation(err) { // a concurrent change stored such a user after the check
		return fault.Conflict("The username or presence_id is taken")
	}

	return sqldb.Wrap(err, "storing a user")
}

// ListUsers lists an account's users, by name.
func (d *Directory) ListUsers(ctx context.Context, accountRef string) ([]User, error) {
	account, err := resolveAccount(ctx, d.db, accountRef)
	if err != nil {
		return nil, err
	}
	return selectUsers(ctx, d.db, account.ID)
}

func selectUsers(ctx context.Context, db sqldb.Runner, accountID string) ([]User, error) {
	rows, err := db.QueryContext(ctx,
		`SELECT `+userColumns+` FROM identity_users u WHERE u.account_id = $1 ORDER BY u.username_key`, accountID)
	return sqldb.Collect(rows, err, "reading users", func(scan sqldb.ScanFunc) (User, error) { return scanUser(scan) })
}

// FindUser returns the user with the id.
func (d *Directory) FindUser(ctx context.Context, id string) (User, error) {
	return findUserByID(ctx, d.db, id)
}

func findUserByID(ctx context.Context, db sqldb.Runner, id string) (User, error) {
	return findUserRow(db.QueryRowContext(ctx, `SELECT `+userColumns+` FROM identity_users u WHERE u.id = $1`, id),
		unknownUser(id))
}

func unknownUser(id string) error { return fault.NotFound("There is no user %s", quote(id)) }

// DeleteUser deletes a user and ends their tokens.
func (d *Directory) DeleteUser(ctx context.Context, accountRef, username string) error {
	return d.deleteUserFoundBy(ctx, func(tx *sql.Tx) (User, error) {
		_, user, err := resolveUser(ctx, tx, accountRef, username)
		return user, err
	})
}

// DeleteUserByID is DeleteUser for the user with the id. ifMatch is the request's
// If-Match header, "" for none. Returns fault.KindPrecondition if it does not match.
func (d *Directory) DeleteUserByID(ctx context.Context, id, ifMatch string) error {
	return d.deleteUserFoundBy(ctx, func(tx *sql.Tx) (User, error) {
		user, err := findUserByID(ctx, tx, id)
		if err != nil {
			return User{}, err
		}
		return user, entitytag.Require(ifMatch, user.ETag())
	})
}

func (d *Directory) deleteUserFoundBy(ctx context.Context, find func(tx *sql.Tx) (User, error)) error {
	entry := d.audit.Entry(ctx, audit.UserDelete, "", "")
	return d.changes.auditedTx(ctx, changeRevocations, &entry, func(tx *sql.Tx, rev int64) error {
		user, err := find(tx)
		if err != nil {
			return err
		}

		if err := revokeUser(ctx, tx, rev, user.ID, d.cfg.Now()); err != nil {
			return err
		}

		entry.AccountID, entry.Target = user.AccountID, "user:"+user.ID
		_, err = tx.ExecContext(ctx, `DELETE FROM identity_users WHERE id = $1`, user.ID)
		return sqldb.Wrap(err, "deleting a user")
	})
}

func selectUser(ctx context.Context, db sqldb.Runner, accountID, username string) (User, error) {
	row := db.QueryRowContext(ctx, `SELECT `+userColumns+` FROM identity_users u
		WHERE u.account_id = $1 AND u.username_key = $2`, accountID, strings.ToLower(username))
	return findUserRow(row, fault.NotFound("There is no user %s in the account", quote(username)))
}

// resolveUser finds an account by id, name or domain, and its user of the name.
func resolveUser(ctx context.Context, db sqldb.Runner, accountRef, username string) (Account, User, error) {
	account, err := resolveAccount(ctx, db, accountRef)
	if err != nil {
		return Account{}, User{}, err
	}
	user, err := selectUser(ctx, db, account.ID, username)
	return account, user, err
}

// SetClickToCallID stores the id of a user's click-to-call resource.
func (d *Directory) SetClickToCallID(ctx context.Context, userID, id string) error {
	entry := d.audit.Entry(ctx, audit.UserUpdate, "", "user:"+userID)
	return audit.Tx(ctx, d.audit, d.db.Tx, &entry, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx,
			`UPDATE identity_users SET clicktocall_id = $1 WHERE id = $2 RETURNING account_id`, id, userID)
		return sqldb.FindInto(row, unknownUser(userID), "storing a click-to-call id", &entry.AccountID)
	})
}
