package identity

import (
	"context"
	"database/sql"
	"log/slog"

	"trunkline/internal/sqldb"
)

// Seed stores the accounts and users of a directory.yaml, on the first start
// only: when there is an account already it checks the file and does nothing
// more. Either all of the file is stored or none of it.
func (s *Service) Seed(ctx context.Context, directory []byte) error {
	file, err := parseDirectory(directory)
	if err != nil {
		return err
	}
	plan, err := s.plan(file)
	if err != nil {
		return err
	}
	_, err = s.store(ctx, plan)
	return err
}

// SeedDemo stores the account demo with its users admin, alice and bob, who
// share a password, on the first start only. It reports whether it did.
func (s *Service) SeedDemo(ctx context.Context, password string) (seeded bool, err error) {
	const account = "demo"
	users := []NewUser{
		{Account: account, Username: "admin", Password: password, Role: RoleAdmin},
		{Account: account, Username: "alice", Password: password, Role: RoleUser, PresenceID: "1001"},
		{Account: account, Username: "bob", Password: password, Role: RoleUser, PresenceID: "1002"},
	}
	var bad problems
	users[0].check("", &bad)
	if err := bad.fault("Invalid demo password"); err != nil {
		return false, err
	}
	root := s.accountOf(NewAccount{ID: account, Name: account, Domain: "demo.local"})
	return s.store(ctx, &seed{accounts: []Account{root}, users: users})
}

// store stores a seed when there is no account yet.
func (s *Service) store(ctx context.Context, plan *seed) (stored bool, err error) {
	if empty, err := isEmpty(ctx, s.db); err != nil || !empty {
		return false, err // before the work of hashing
	}
	hashes := make([]string, len(plan.users))
	for i, user := range plan.users {
		if hashes[i], err = s.passwords.Hash(ctx, user.Password); err != nil {
			return false, err
		}
	}
	err = s.change(ctx, changeDirectory, func(tx *sql.Tx, _ int64) error {
		// Another node that starts with us may have been first.
		empty, err := isEmpty(ctx, tx)
		stored = empty
		if err != nil || !empty {
			return err
		}
		return s.insertSeed(ctx, tx, plan, hashes)
	})
	if err != nil || !stored {
		return false, err
	}
	s.audit(ctx, "directory.seed", slog.Int("accounts", len(plan.accounts)), slog.Int("users", len(plan.users)))
	return true, nil
}

func isEmpty(ctx context.Context, db sqldb.Runner) (bool, error) {
	var accounts int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_accounts`).Scan(&accounts)
	return accounts == 0, sqldb.Wrap(err, "reading accounts")
}

func (s *Service) insertSeed(ctx context.Context, tx *sql.Tx, plan *seed, hashes []string) error {
	for _, account := range plan.accounts {
		if err := insertAccount(ctx, tx, account); err != nil {
			return err
		}
	}
	domains := make(map[string]string, len(plan.accounts))
	for _, account := range plan.accounts {
		domains[account.ID] = account.Domain
	}
	for i, n := range plan.users {
		user := s.userOf(n)
		user.AccountID = n.Account
		if err := insertUser(ctx, tx, user, hashes[i]); err != nil {
			return err
		}
		if err := s.storeDevice(ctx, tx, user, domains[n.Account], n.Password); err != nil {
			return err
		}
	}
	return nil
}
