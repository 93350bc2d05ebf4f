package identity

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// Seed stores the accounts and users of a directory.yaml on the first start. If
// an account was ever created, it only validates the file. It stores the whole file or nothing.
func (d *Directory) Seed(ctx context.Context, directory []byte) error {
	file, err := parseDirectory(directory)
	if err != nil {
		return err
	}

	contents, err := buildSeed(file, d.cfg.storedNow())
	if err != nil {
		return err
	}

	_, err = d.storeSeed(ctx, contents)
	return err
}

// SeedDemo stores the account demo with the users admin, alice and bob, who share a
// password, on the first start only. It reports whether it stored them.
func (d *Directory) SeedDemo(ctx context.Context, password string) (seeded bool, err error) {
	const account = "demo"
	users := []NewUser{
		{Account: account, Username: "admin", Password: password, Role: RoleAdmin},
		{Account: account, Username: "alice", Password: password, Role: RoleUser, PresenceID: "1001"},
		{Account: account, Username: "bob", Password: password, Role: RoleUser, PresenceID: "1002"},
	}
	empty, err := isEmpty(ctx, d.db)
	if err != nil || !empty {
		return false, err
	}

	root := buildAccount(NewAccount{ID: account, Name: account, Domain: "demo.local"}, d.cfg.storedNow())
	for _, user := range users {
		if err := checkNewPassword("demo_password", password, ownWords(user.Username, root)); err != nil {
			return false, err
		}
	}

	return d.storeSeed(ctx, &seedRows{accounts: []Account{root}, users: users})
}

// storeSeed stores a seed if no account was ever created.
func (d *Directory) storeSeed(ctx context.Context, contents *seedRows) (stored bool, err error) {
	empty, err := isEmpty(ctx, d.db)
	if err != nil || !empty {
		return false, err // without computing the hashes
	}

	var bad fieldProblems
	for i, user := range contents.users {
		account := contents.accounts[slices.IndexFunc(contents.accounts,
			func(a Account) bool { return a.ID == user.Account })]
		bad.checkStrength(fmt.Sprintf("users[%d].password", i), user.Password, ownWords(user.Username, account))
	}

	if err := bad.asError(badDirectory); err != nil {
		return false, err
	}

	hashes := make([]string, len(contents.users))
	for i, user := range contents.users {
		hashes[i], err = d.passwords.Hash(ctx, user.Password)
		if err != nil {
			return false, err
		}
	}

	var entries []audit.Entry
	err = d.changes.tx(ctx, changeBoth, func(tx *sql.Tx, rev int64) error {
		// Another node may have stored its seed since the check.
		empty, err := isEmpty(ctx, tx)
		stored = empty
		if err != nil || !empty {
			return err
		}

		entries, err = d.insertSeed(ctx, tx, rev, contents, hashes)
		if err != nil {
			return err
		}

		return d.audit.Insert(ctx, tx, entries...)
	})
	if err != nil || !stored {
		return false, err
	}

	d.audit.AfterCommit(ctx, entries...)
	return true, nil
}

// isEmpty reports whether no account was ever created.
func isEmpty(ctx context.Context, db sqldb.Runner) (bool, error) {
	var accounts int
	err := db.QueryRowContext(ctx,
		`SELECT (SELECT COUNT(*) FROM identity_accounts) + (SELECT COUNT(*) FROM identity_deleted_accounts)`).Scan(
		&accounts)
	return accounts == 0, sqldb.Wrap(err, "reading accounts")
}

// insertSeed stores a seed and returns its audit entries.
func (d *Directory) insertSeed(ctx context.Context, tx *sql.Tx, rev int64, contents *seedRows,
	hashes []string) (entries []audit.Entry, err error) {
	for _, account := range contents.accounts {
		if err := insertAccount(ctx, tx, account, ""); err != nil {
			return nil, err
		}
		entries = append(entries,
			d.audit.Entry(ctx, audit.AccountCreate, account.auditAccountID(), "account:"+account.ID))
	}

	domains := make(map[string]string, len(contents.accounts))
	for _, account := range contents.accounts {
		domains[account.ID] = account.Domain
	}

	for i, n := range contents.users {
		user := buildUser(n, d.cfg.storedNow())
		user.AccountID = n.Account
		if err := insertUser(ctx, tx, rev, user, hashes[i]); err != nil {
			return nil, err
		}
		if err := d.phones.storePortalHA1(ctx, tx, user, domains[n.Account], n.Password); err != nil {
			return nil, err
		}

		entries = append(entries, d.audit.Entry(ctx, audit.UserCreate, user.AccountID, "user:"+user.ID))
	}

	return entries, nil
}
