package identity

import (
	"context"
	"database/sql"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

const badPassword = "Invalid password"

// ChangePassword sets the password of the principal's user and ends the user's other
// portal sessions and channel logins by password. A wrong current password counts as a
// failed login from the address.
func (c *Credentials) ChangePassword(ctx context.Context, p *Principal, current, next, address string) error {
	if p.IsKey() {
		return fault.Forbidden("An API key has no password")
	}

	account, known := c.directory.Tree().Account(p.AccountID)
	if !known {
		return fault.Forbidden("The account was deleted")
	}
	if err := checkNewPassword("new", next, ownWords(p.Username, account)); err != nil {
		return err
	}

	r := LoginRequest{Username: p.Username, Password: current, Domain: account.Domain, Address: address}
	user, err := c.checkCredentials(ctx, r)
	if err != nil {
		c.auditRefusedLogin(ctx, AudienceAPI, r, user, err)
		if fault.KindOf(err) == fault.KindUnauthenticated {
			return fault.InvalidField("current", "wrong", badPassword)
		}
		return err
	}

	if err := limitTokens(ctx, c.limits.limiter, kindLogin, user.ID, c.cfg.UserTokensPerMinute); err != nil {
		return err
	}

	return c.storePassword(ctx, next, p.FamilyID, func(context.Context, *sql.Tx) (User, Account, error) {
		return user, account, nil
	})
}

// SetPassword sets a user's password and ends all their sessions.
func (c *Credentials) SetPassword(ctx context.Context, accountRef, username, password string) error {
	words, err := wordsOf(ctx, c.db, accountRef, username)
	if err != nil {
		return err
	}

	if err := checkNewPassword("password", password, words); err != nil {
		return err
	}

	return c.storePassword(ctx, password, "", func(ctx context.Context, tx *sql.Tx) (User, Account, error) {
		account, user, err := resolveUser(ctx, tx, accountRef, username)
		return user, account, err
	})
}

// storePassword stores the password of the user that find returns, and ends the user's
// sessions except keptFamily.
func (c *Credentials) storePassword(ctx context.Context, password, keptFamily string,
	find func(ctx context.Context, tx *sql.Tx) (User, Account, error)) error {
	hash, err := c.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}

	entry := c.audit.Entry(ctx, audit.PasswordUpdate, "", "")
	return c.directory.changes.auditedTx(ctx, changeRevocations, &entry, func(tx *sql.Tx, rev int64) error {
		user, account, err := find(ctx, tx)
		if err != nil {
			return err
		}

		entry.AccountID, entry.Target = account.ID, "user:"+user.ID
		if err := updatePassword(ctx, tx, rev, user.ID, hash, keptFamily); err != nil {
			return err
		}

		return c.phones.replacePortalHA1(ctx, tx, user, account.Domain, password)
	})
}

// updatePassword stores a password hash and ends the user's sessions except keptFamily.
func updatePassword(ctx context.Context, tx *sql.Tx, rev int64, userID, hash, keptFamily string) error {
	err := conflictIfExists(ctx, tx,
		fault.Conflict("The user logs in at the OpenID Connect provider and has no password"),
		"reading a provider's user",
		`SELECT 1 FROM identity_oidc_subjects WHERE user_id = $1`, userID)
	if err != nil {
		return err
	}

	stored, err := sqldb.Exec(ctx, tx, `UPDATE identity_users SET password = $1, generation = generation + 1,
		kept_family = $2, revision = $3 WHERE id = $4`, hash, keptFamily, rev, userID)
	if err != nil {
		return sqldb.Wrap(err, "storing a password")
	}

	if stored == 0 {
		return fault.NotFound("The user was deleted")
	}

	_, err = tx.ExecContext(ctx, `DELETE FROM identity_refresh_tokens WHERE user_id = $1 AND family_id <> $2`, userID,
		keptFamily)
	return sqldb.Wrap(err, "ending a user's other sessions")
}
