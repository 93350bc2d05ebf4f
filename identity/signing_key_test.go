package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func (s *testService) storedSeeds(t testing.TB) []string {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), `SELECT seed FROM identity_signing_keys`)
	return must(sqldb.Collect(rows, err, "reading seeds", func(scan sqldb.ScanFunc) (seed string, err error) {
		err = scan(&seed)
		return seed, err
	}))(t)
}

func TestACopyOfTheDatabaseSignsNoTokens(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		for _, seed := range s.storedSeeds(t) {
			if plain, err := base64.StdEncoding.DecodeString(seed); err == nil && len(plain) == ed25519.SeedSize {
				t.Error("a signing seed is stored in plain text")
			}
			if masterkey.KeyID(seed) == "" {
				t.Errorf("not sealed: %.10s…", seed)
			}
		}
	})
}

func TestPlainSigningKeysAreSealedAtTheNextStart(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed)
		id := sqldb.NewID()

		// The only key, in plain text as stored by earlier versions.
		err := s.changes.tx(t.Context(), changeDirectory, func(tx *sql.Tx, _ int64) error {
			if _, err := tx.ExecContext(t.Context(), `DELETE FROM identity_signing_keys`); err != nil {
				return err
			}
			_, err := tx.ExecContext(t.Context(), `INSERT INTO identity_signing_keys (id, seed, signs_from, created_at)
				VALUES ($1, $2, 1, 1)`, id, base64.StdEncoding.EncodeToString(seed))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		token := s.mustLogin(t, "alice").AccessToken
		again := startService(t, cfg, Config{})
		if seeds := again.storedSeeds(t); slices.Contains(seeds, base64.StdEncoding.EncodeToString(seed)) {
			t.Error("the seed is still stored in plain text")
		}

		again.mustAuthenticate(t, token)
		s.mustAuthenticate(t, token)
		if key := must(again.signing.Load().keys.signer(time.UnixMilli(2)))(t); key.id != id {
			t.Errorf("%s signs, not the sealed key", key.id)
		}
		if !strings.Contains(again.logged.String(), "signing keys sealed") ||
			strings.Contains(again.logged.String(), base64.StdEncoding.EncodeToString(seed)) {
			t.Errorf("logged %s", again.logged)
		}

		var plain int
		if err := s.db.QueryRowContext(t.Context(),
			`SELECT COUNT(*) FROM identity_signing_keys WHERE master_key_id = ''`).Scan(&plain); err != nil ||
			plain > 0 {
			t.Errorf("%d plain keys: %v", plain, err)
		}
	})
}

func TestWithoutTheMasterKeyTokensAreCheckedButNotMade(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		token := s.mustLogin(t, "alice").AccessToken
		without := startServiceWithKeys(t, testdb.Open(t, cfg), Config{}, NewMemoryLimiter(), emptyRing(t))
		without.mustAuthenticate(t, token)
		_, err := without.Login(t.Context(), demoLogin("alice"))
		wantKind(t, "a login", err, fault.KindUnavailable)

		if err := RequireSecrets(t.Context(), without.db, emptyRing(t)); !fault.IsPermanent(err) {
			t.Errorf("the start is not refused: %v", err)
		}
		if err := without.PrepareSigning(t.Context()); err == nil {
			t.Error("signing was prepared without a master key")
		}
		if err := without.service.runMaintenance(t.Context()); err != nil {
			t.Error(err)
		}

		another := newRing(t)
		if _, err := newService(t, testdb.Open(t, cfg), Config{}, NewMemoryLimiter(),
			another); !fault.IsPermanent(err) {
			t.Errorf("another master key: %v", err)
		}
	})
}

func TestSigningKeysFollowTheMasterKey(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		keys := newRing(t)
		s := startServiceWithKeys(t, testdb.Open(t, cfg), Config{}, NewMemoryLimiter(), keys).demo(t)
		token := s.mustLogin(t, "alice").AccessToken
		before := s.storedSeeds(t)
		done, err := masterkey.Rotate(t.Context(), keys, Secrets(s.db, keys), func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}

		for _, seed := range s.storedSeeds(t) {
			if masterkey.KeyID(seed) != done.KeyID || slices.Contains(before, seed) {
				t.Errorf("sealed under %s, want %s", masterkey.KeyID(seed), done.KeyID)
			}
		}

		s.mustLogin(t, "alice")
		again := startServiceWithKeys(t, testdb.Open(t, cfg), Config{}, NewMemoryLimiter(), keys)
		again.mustAuthenticate(t, token)
		again.mustLogin(t, "alice")
	})
}

func keyIDOf(t testing.TB, token string) string {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, &claims{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Header["kid"].(string)
}

func TestARotatedSigningKeySignsAtOnceOnEveryNode(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		a := startService(t, cfg, Config{}).demo(t)
		b := startService(t, cfg, Config{})
		b.run(t)
		old := a.mustLogin(t, "alice")
		id := must(a.RotateSigningKey(t.Context(), false))(t)
		if kid := keyIDOf(t, a.mustLogin(t, "alice").AccessToken); kid != id {
			t.Errorf("%s signs, want %s", kid, id)
		}

		waitFor(t, "the other node signs with it",
			func() bool { return keyIDOf(t, b.mustLogin(t, "alice").AccessToken) == id })
		b.mustAuthenticate(t, old.AccessToken)
		must(b.Refresh(t.Context(), old.RefreshToken))(t)
	})
}

func TestRotatingNowEndsEveryToken(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		a := startService(t, cfg, Config{Now: c.now}).demo(t)
		c.add(29 * 24 * time.Hour) // the next key is published

		if err := a.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}

		b := startService(t, cfg, Config{Now: c.now})
		b.run(t)
		session := a.mustLogin(t, "alice")
		channel, _, err := a.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
		if err != nil {
			t.Fatal(err)
		}

		open := []*Principal{b.mustAuthenticate(t, session.AccessToken), b.mustAuthenticate(t, channel)}
		changed := b.Changed()
		id := must(a.RotateSigningKey(t.Context(), true))(t)
		if keys := a.signing.Load().keys; len(keys) != 1 || keys[0].id != id {
			t.Errorf("%d keys are left", len(keys))
		}

		<-changed
		for _, p := range open {
			wantKind(t, "an open "+string(p.Audience)+" session", b.CheckPrincipal(p), fault.KindForbidden)
		}

		for _, token := range []string{session.AccessToken, channel} {
			_, err := b.Authenticate(t.Context(), token)
			wantKind(t, "a token", err, fault.KindUnauthenticated)
		}

		_, err = a.Refresh(t.Context(), session.RefreshToken)
		wantKind(t, "a refresh token", err, fault.KindUnauthenticated)
		b.mustAuthenticate(t, b.mustLogin(t, "alice").AccessToken)
	})
}

func TestARotationBehindTheClockThatMadeTheKeySignsAtOnce(t *testing.T) {
	c := newClock()
	cfg := testdb.SQLite(t)
	startService(t, cfg, Config{Now: c.now}).demo(t)
	c.add(-time.Hour)
	s := startService(t, cfg, Config{Now: c.now})
	old := s.mustLogin(t, "alice").AccessToken
	id := must(s.RotateSigningKey(t.Context(), false))(t)
	s.mustAuthenticate(t, old)
	c.add(time.Hour + time.Second)

	if kid := keyIDOf(t, s.mustLogin(t, "alice").AccessToken); kid != id {
		t.Errorf("%s signs, want %s", kid, id)
	}
}

func TestJWKSIsWhatTokensAreCheckedWith(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	var set struct {
		Keys []map[string]string
	}
	if err := json.Unmarshal(s.JWKS(), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%s: %v", s.JWKS(), err)
	}

	key := s.signing.Load().keys[0]

	want := map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": key.id,
		"x": base64.RawURLEncoding.EncodeToString(key.public)}
	for name, value := range want {
		if set.Keys[0][name] != value {
			t.Errorf("%s is %q", name, set.Keys[0][name])
		}
	}

	if len(set.Keys[0]) != len(want) {
		t.Errorf("a private part is published: %v", set.Keys[0])
	}
}

func TestSigningKeysRotate(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		const day = 24 * time.Hour
		c := newClock()

		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		kids := func() (ids []string) {
			for _, key := range s.signing.Load().keys {
				ids = append(ids, key.id)
			}
			return ids
		}

		signer := func() string { return must(s.signing.Load().keys.signer(c.now()))(t).id }
		advance := func(d time.Duration) {
			t.Helper()
			c.add(d)
			if err := s.service.runMaintenance(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		first := kids()
		advance(29*day - time.Second)
		if !slices.Equal(kids(), first) {
			t.Fatalf("too early: %v", kids())
		}

		advance(time.Second)
		both := kids()
		if len(both) != 2 || both[0] != first[0] || signer() != first[0] {
			t.Fatalf("published %v, signing %s", both, signer())
		}
		if strings.Count(string(s.JWKS()), `"kid"`) != 2 {
			t.Errorf("JWKS %s", s.JWKS())
		}

		advance(day - time.Second)
		token, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
		if err != nil {
			t.Fatal(err)
		}

		advance(time.Second)
		if signer() != both[1] {
			t.Errorf("the second key does not sign")
		}

		advance(day - 2*time.Second)
		s.mustAuthenticate(t, token) // signed by the first key, at the end of its life
		s.mustAuthenticate(t, s.mustLogin(t, "alice").AccessToken)
		advance(maxTokenTTL)

		if slices.Contains(kids(), first[0]) || !slices.Contains(kids(), both[1]) {
			t.Errorf("kept %v", kids())
		}

		again := startService(t, cfg, Config{Now: c.now})
		if string(again.JWKS()) != string(s.JWKS()) {
			t.Error("another node publishes other keys")
		}
	})
}

func TestNodesThatRotateAtOnceMakeOneKey(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		nodes := []*testService{startService(t, cfg, Config{Now: c.now}), startService(t, cfg, Config{Now: c.now}),
			startService(t, cfg, Config{Now: c.now})}
		c.add(29 * 24 * time.Hour)
		var group sync.WaitGroup

		for _, n := range nodes {
			group.Go(func() {
				if err := n.rotateKeys(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}

		group.Wait()
		if keys := must(readSigningKeys(t.Context(), nodes[0].db, nodes[0].Tokens.keyring))(t); len(keys) != 2 {
			t.Errorf("%d keys", len(keys))
		}
	})
}

func TestANodeThatSleptSignsOnAndPublishesFirst(t *testing.T) {
	c := newClock()
	s := startService(t, testdb.SQLite(t), Config{Now: c.now}).demo(t)
	c.add(365 * 24 * time.Hour)

	if err := s.service.runMaintenance(t.Context()); err != nil {
		t.Fatal(err)
	}

	keys := s.signing.Load().keys
	if len(keys) != 2 || must(keys.signer(c.now()))(t).id != keys[0].id ||
		!keys[1].signsFrom.Equal(c.now().Add(24*time.Hour)) {
		t.Errorf("keys %v", keys)
	}

	c.add(-366 * 24 * time.Hour) // a node whose clock is behind
	if must(keys.signer(c.now()))(t).id != keys[0].id {
		t.Error("the first key does not sign before its time")
	}
}
