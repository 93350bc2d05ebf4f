package identity

import (
	"database/sql"
	"fmt"
	"testing"

	"trunkline/internal/testservice/testdb"
)

func TestACheckedTokenIsForgottenWithItsKey(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	if _, err := s.SeedDemo(t.Context(), password); err != nil {
		t.Fatal(err)
	}

	session, err := s.Login(t.Context(), LoginRequest{Username: "alice", Password: password, Domain: "demo.local"})
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if _, err := s.Authenticate(t.Context(), session.AccessToken); err != nil {
			t.Fatal(err)
		}
	}

	if _, ok := s.signing.Load().verifiedTokens.find(session.AccessToken); !ok {
		t.Fatal("the signature of the token is verified again for each request")
	}
	if _, err := s.Authenticate(t.Context(), session.AccessToken+"A"); err == nil {
		t.Error("another token with the same beginning is taken")
	}

	err = s.changes.tx(t.Context(), changeDirectory, func(tx *sql.Tx, _ int64) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM identity_signing_keys`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := s.Authenticate(t.Context(), session.AccessToken); err == nil {
		t.Error("a token of a key that is gone is taken")
	}
}

func TestCachedTokensAreBounded(t *testing.T) {
	verified := newTokenCache()
	for i := range maxCachedTokens + 10 {
		verified.put(fmt.Sprint(i), &claims{})
	}

	if n := len(verified.entries); n > maxCachedTokens {
		t.Errorf("%d are kept", n)
	}
	if _, ok := verified.find(fmt.Sprint(maxCachedTokens + 9)); !ok {
		t.Error("the newest is not there")
	}
}
