package identity

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

// A tenant that makes the tree unreadable does not stop revocation: deleted users and keys
// are refused although the accounts cannot be read, and after maxStaleness everything is.
func TestWhatCannotBeCheckedIsRefused(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	token := s.mustLogin(t, "alice").AccessToken
	admin := s.mustLogin(t, "admin").AccessToken
	key, stored, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
	if err != nil {
		t.Fatal(err)
	}

	alice, bob := s.mustAuthenticate(t, token), s.mustAuthenticate(t, admin)

	err = s.db.Tx(t.Context(), func(tx *sql.Tx) error {
		for _, statement := range []string{
			`INSERT INTO identity_revocations (id, expires_at, revision) SELECT '` + alice.UserID +
				`', 99999999999999, revocations + 1 FROM identity_revision`,
			`DELETE FROM identity_api_keys WHERE id = '` + stored.ID + `'`,
			`UPDATE identity_revision SET directory = directory + 1, revocations = revocations + 1`,
			`ALTER TABLE identity_accounts RENAME TO unreadable`,
		} {
			if _, err := tx.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.changes.poll(t.Context()); err == nil {
		t.Fatal("the accounts were read")
	}

	_, err = s.Authenticate(t.Context(), token)
	wantKind(t, "a deleted user's token", err, fault.KindUnauthenticated)
	_, err = s.AuthenticateKey(t.Context(), key)
	wantKind(t, "a deleted key", err, fault.KindUnauthenticated)
	s.mustAuthenticate(t, admin)

	past := time.Now().Add(-maxStaleness - time.Second).UnixNano()
	s.changes.freshness.currentAt.Store(past)
	s.changes.freshness.behindSince.Store(past)
	_, err = s.Authenticate(t.Context(), admin)
	wantKind(t, "a token", err, fault.KindUnavailable)
	_, err = s.AuthenticateKey(t.Context(), key)
	wantKind(t, "a key", err, fault.KindUnavailable)
	wantKind(t, "an open socket", s.CheckPrincipal(bob), fault.KindUnavailable)

	if _, err := s.db.ExecContext(t.Context(), `ALTER TABLE unreadable RENAME TO identity_accounts`); err != nil {
		t.Fatal(err)
	}
	if err := s.changes.poll(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.mustAuthenticate(t, admin)
	if s.changes.freshness.age() > maxStaleness || s.CheckPrincipal(bob) != nil {
		t.Error("it is not fresh again")
	}
}

// A process that does not poll, as a management command, reads before it refuses.
func TestStaleMemoryIsReadAgainWhereNothingPolls(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	token := s.mustLogin(t, "alice").AccessToken
	past := time.Now().Add(-time.Hour).UnixNano()
	s.changes.freshness.currentAt.Store(past)
	s.changes.freshness.polledAt.Store(past)
	s.mustAuthenticate(t, token)
}
