package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
	"trunkline/internal/retry"
)

// benchAccounts holds the accounts of a run's events and of their subscribers.
type benchAccounts struct {
	root                       string   // account of the user; "" if the run did not create it
	ids                        []string // of the accounts of events, one for each stream
	username, password, domain string
	delete                     func() // deletes the accounts, if the run created them
}

// openAccounts returns the accounts of a run: those named on the command line, or new ones that it
// creates in the server's database, with a user of the given role.
func (b *bench) openAccounts(ctx context.Context, run string, role identity.Role) (*benchAccounts, error) {
	if b.username != "" {
		password := b.p.Getenv(cli.EnvPassword)
		if password == "" {
			return nil, cli.Usagef("--username needs its password in %s", cli.EnvPassword)
		}
		return &benchAccounts{ids: b.accountIDs, username: b.username, password: password, domain: b.domain,
			delete: func() {}}, nil
	}

	root := rootAccount(run)
	a := &benchAccounts{root: root, username: "bench", password: rand.Text(), domain: root + ".invalid"}
	a.delete = func() { b.deleteAccounts(ctx, root) }

	err := b.p.WithNewDirectory(ctx, func(directory *identity.Directory) error {
		_, err := directory.CreateAccount(ctx, identity.NewAccount{ID: root, Name: root, Domain: a.domain})
		if err != nil {
			return err
		}

		for i := range b.accounts {
			id := childAccount(run, i)
			child := identity.NewAccount{ID: id, Name: id, Domain: id + ".invalid", Parent: root}
			_, err := directory.CreateAccount(ctx, child)
			if err != nil {
				return err
			}

			a.ids = append(a.ids, id)
		}

		_, err = directory.CreateUser(ctx, identity.NewUser{
			Account: root, Username: a.username, Password: a.password, Role: role,
		})

		return err
	})
	if err != nil {
		a.delete()
		return nil, fmt.Errorf("creating the accounts of the run: %w", err)
	}

	if !retry.Sleep(ctx, accountPropagation) {
		a.delete()
		return nil, ctx.Err()
	}

	return a, nil
}

// accountPropagation is the time until servers have applied a change of the database: about a second.
const accountPropagation = 1200 * time.Millisecond

func rootAccount(run string) string { return "bench-" + strings.ToLower(run) }

func childAccount(run string, i int) string { return fmt.Sprintf("%s-%d", rootAccount(run), i+1) }

// longestAccount returns an account id as long as the longest of the run.
func (b *bench) longestAccount() string {
	longest := childAccount(strings.Repeat("x", 8), b.accounts)
	for _, id := range b.accountIDs {
		if len(id) > len(longest) {
			longest = id
		}
	}
	return longest
}

// reportLeftovers prints which data of the run's own accounts remains on the server.
func (b *bench) reportLeftovers(a *benchAccounts, leftovers string) {
	if a.root != "" {
		b.printf("account %s and those below it are deleted; these remain: %s", a.root, leftovers)
	}
}

// deleteAccounts deletes the run's accounts, including partly created ones.
func (b *bench) deleteAccounts(ctx context.Context, root string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()

	err := b.p.WithDirectory(ctx, func(directory *identity.Directory) error {
		accounts, err := directory.ListAccounts(ctx)
		if err != nil {
			return err
		}

		found := false
		for _, account := range accounts {
			found = found || account.ID == root
			if account.ParentID != root {
				continue
			}

			_, err := directory.DeleteAccount(ctx, account.ID, "")
			if err != nil {
				return err
			}
		}

		if !found {
			return nil
		}

		_, err = directory.DeleteAccount(ctx, root, "")
		return err
	})
	if err != nil {
		b.printf("deleting account %s failed: %v", root, err)
	}
}

func (a *benchAccounts) credentials() credentials {
	return credentials{Username: a.username, Password: a.password, Domain: a.domain}
}
