package identity

import (
	"context"
	"database/sql"

	"trunkline/audit"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// UserUpdate has the new values of a user's fields. The username cannot be changed.
type UserUpdate struct {
	Role       Role
	Limits             // of the role
	PresenceID string  // extension; "" removes it
	Password   *string // nil to keep the stored one
	IfMatch    string  // If-Match header; "" for an unconditional update

	By *Principal // whose rights bound the user's; nil for the operator
}

// UpdateUser changes a user. A change of the role ends the user's access and channel
// tokens, and a change of the password also ends the sessions. A change of the extension
// deletes the passwords of the user's phones.
func (d *Directory) UpdateUser(ctx context.Context, id string, u UserUpdate) (User, error) {
	u.Limits = u.clean()
	hash, err := d.checkUserUpdate(ctx, id, u)
	if err != nil {
		return User{}, err
	}

	var user User
	entries := []audit.Entry{d.audit.Entry(ctx, audit.UserUpdate, "", "user:"+id)}
	if u.Password != nil {
		entries = append(entries, d.audit.Entry(ctx, audit.PasswordUpdate, "", "user:"+id))
	}

	err = d.changes.tx(ctx, changeRevocations, func(tx *sql.Tx, rev int64) (err error) {
		user, err = findUserByID(ctx, tx, id)
		if err != nil {
			return err
		}

		if err := entitytag.Require(u.IfMatch, user.ETag()); err != nil {
			return err
		}
		if err := d.checkGrantedUser(user, u); err != nil {
			return err
		}
		if err := updateUserRow(ctx, tx, rev, &user, u); err != nil {
			return err
		}

		if u.Password != nil {
			if err := d.updatePasswordAndHA1(ctx, tx, rev, &user, hash, *u.Password); err != nil {
				return err
			}
		}

		for i := range entries {
			entries[i].AccountID = user.AccountID
		}

		return d.audit.Insert(ctx, tx, entries...)
	})
	if err != nil {
		return User{}, err
	}

	d.audit.AfterCommit(ctx, entries...)
	return user, nil
}

// checkGrantedUser checks that u.By may raise the user's role and set the password.
func (d *Directory) checkGrantedUser(user User, u UserUpdate) error {
	if u.Role == RoleAdmin && user.Role != RoleAdmin {
		// Includes the password, which needs no more than the role.
		return d.CheckCredentialGrant(u.By, RoleAdmin)
	}
	if u.Password != nil {
		return d.CheckCredentialGrant(u.By, user.Role)
	}
	return nil
}

// checkUserUpdate validates u for the user with the id and returns the hash of the new
// password, "" if u has none.
func (d *Directory) checkUserUpdate(ctx context.Context, id string, u UserUpdate) (hash string, err error) {
	var bad fieldProblems
	bad.checkUserFields("", u.PresenceID, u.Role, u.Limits)
	if u.Password != nil {
		bad.checkPassword("password", *u.Password)
		user, err := findUserByID(ctx, d.db, id)
		if err != nil {
			return "", err
		}

		account, _ := d.Tree().Account(user.AccountID)
		bad.checkStrength("password", *u.Password, ownWords(user.Username, account))
	}

	err = bad.asError("Invalid user")
	if err != nil || u.Password == nil {
		return "", err
	}

	return d.passwords.Hash(ctx, *u.Password)
}

// updateUserRow stores the new role, its limits and the extension, and sets them in user.
func updateUserRow(ctx context.Context, tx *sql.Tx, rev int64, user *User, u UserUpdate) error {
	if u.PresenceID != user.PresenceID { // the hashes of the phones' passwords include it
		for _, table := range []string{"identity_devices", "identity_device_passwords"} {
			_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, user.ID)
			if err != nil {
				return sqldb.Wrap(err, "deleting the devices of a user")
			}
		}
	}

	user.Role, user.Limits, user.PresenceID = u.Role, u.Limits, u.PresenceID
	var taken bool
	err := tx.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM identity_users WHERE account_id = $1 AND presence_id = $2 AND id <> $3)`,
		user.AccountID, u.PresenceID, user.ID).Scan(&taken)
	if err != nil {
		return sqldb.Wrap(err, "reading users")
	}

	if taken {
		return fault.Conflict("The presence_id is taken by another user of the account")
	}

	_, err = tx.ExecContext(ctx, `UPDATE identity_users SET role = $2, presence_id = $3, revision = $4,
		limited_role = $5, queue_ids = $6, agent_ids = $7 WHERE id = $1`,
		user.ID, user.Role.inRoleColumn(), sql.NullString{String: user.PresenceID, Valid: user.PresenceID != ""}, rev,
		user.Role.inLimitedRoleColumn(), idList(user.QueueIDs), idList(user.AgentIDs))

	return sqldb.Wrap(err, "storing a user")
}

// updatePasswordAndHA1 stores a password's hash and the portal HA1 of the user's phone,
// and increments the user's passwordGeneration.
func (d *Directory) updatePasswordAndHA1(ctx context.Context, tx *sql.Tx, rev int64, user *User,
	hash, password string) error {
	account, err := resolveAccount(ctx, tx, user.AccountID)
	if err != nil {
		return err
	}
	if err := updatePassword(ctx, tx, rev, user.ID, hash, ""); err != nil {
		return err
	}
	user.passwordGeneration++
	return d.phones.replacePortalHA1(ctx, tx, *user, account.Domain, password)
}
