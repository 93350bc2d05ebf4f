package encryption

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit/audittest"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// onEachDatabase runs a test on SQLite and on PostgreSQL.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *sqldb.DB)) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) { test(t, testdb.Open(t, at)) })
}

func fileKeys(t testing.TB) *masterkey.Keyring {
	t.Helper()
	k, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Create(); err != nil {
		t.Fatal(err)
	}
	return k
}

func openService(t testing.TB, db *sqldb.DB, keys *masterkey.Keyring) *Service {
	t.Helper()
	s, err := New(context.Background(), db, keys, audittest.New(t, db), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Service, account string, c Change) *Document {
	t.Helper()
	a, err := s.Update(audittest.CallerContext(t, "user:u1"), account, c, "")
	if err != nil {
		t.Fatal(err)
	}
	return a.Config
}

func TestStoredSequencesFollowTheTable(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		s := openService(t, db, fileKeys(t))
		for seed := range uint64(4) {
			r, m := rand.New(rand.NewPCG(seed, 7)), newModel()
			account := fmt.Sprintf("account-%d", seed)
			for step := range 15 {
				a, err := s.Find(audittest.CallerContext(t, "user:u1"), account)
				if err != nil {
					t.Fatal(err)
				}

				if err := m.compare(a.Config); err != nil {
					t.Fatalf("seed %d, step %d, GET: %v", seed, step, err)
				}

				c := randomChange(r, "")
				if err := m.put(c, put(t, s, account, c)); err != nil {
					t.Fatalf("seed %d, step %d, PUT: %v", seed, step, err)
				}

				sealing, err := s.Current(t.Context(), account)
				var key Key
				if m.version > 0 {
					key = Key{"key_auto_account-", m.version, m.key, m.salt}
				}
				if want := (Sealing{m.enabled, m.algorithm, key}); err != nil || sealing != want {
					t.Fatalf("seed %d, step %d: current %+v, %v", seed, step, sealing, err)
				}
			}

			for version := range m.version {
				k, err := s.Key(t.Context(), account, version+1)
				if old := fmt.Sprint(version + 1); err != nil ||
					version+1 < m.version && (k.Key != m.keys[old] || k.Salt != m.salts[old]) {
					t.Errorf("version %s: %v", old, err)
				}
			}
		}
	})
}

// Many writers of one account on two nodes: every PUT succeeds, each new key gets a
// version of its own, and none is lost.
func TestConcurrentPutsLoseNoKey(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		keys := fileKeys(t)
		nodes := []*Service{openService(t, db, keys), openService(t, db, keys)}
		const writers, each = 6, 5
		var mu sync.Mutex
		got := map[int64]string{}
		var wg sync.WaitGroup

		for w := range writers {
			wg.Go(func() {
				for i := range each {
					key := fmt.Sprintf("writer %d's very own key number %d", w, i)
					a, err := nodes[w%2].Update(audittest.CallerContext(t, "user:u1"), "acme",
						Change{Enabled: true, Key: &key}, "")
					if err != nil {
						t.Error(err)
						return
					}

					mu.Lock()
					if got[a.Config.KeyVersion] != "" || a.Config.Key != key {
						t.Errorf("version %d twice", a.Config.KeyVersion)
					}

					got[a.Config.KeyVersion] = key
					mu.Unlock()
				}
			})
		}

		wg.Wait()
		a, err := nodes[0].Find(audittest.CallerContext(t, "user:u1"), "acme")
		if err != nil {
			t.Fatal(err)
		}

		d := a.Config
		if d.KeyVersion != writers*each || len(d.HistoricalKeys) != writers*each-1 {
			t.Fatalf("version %d, %d old ones", d.KeyVersion, len(d.HistoricalKeys))
		}

		for v := int64(1); v < d.KeyVersion; v++ {
			if version := fmt.Sprint(v); d.HistoricalKeys[version] != got[v] || d.HistoricalSalts[version] != d.Salt {
				t.Errorf("version %d is not the one that was answered", v)
			}
		}
	})
}

func TestIfMatchGuardsAgainstALostUpdate(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		s := openService(t, db, fileKeys(t))
		try := func(ifMatch string, want fault.Kind) *Result {
			t.Helper()
			a, err := s.Update(audittest.CallerContext(t, "user:u1"), "acme", Change{Enabled: true}, ifMatch)
			if fault.KindOf(err) != want {
				t.Errorf("If-Match %s: %v", ifMatch, err)
			}
			return a
		}

		try("*", fault.KindPrecondition)
		first := try(`"0"`, "")
		try(`"0"`, fault.KindPrecondition)
		try("W/"+first.ETag, fault.KindPrecondition)
		second := try(`"x", `+first.ETag, "")
		try("*", "")

		if first.ETag == second.ETag {
			t.Error("a change kept the ETag")
		}

		a, err := s.Find(audittest.CallerContext(t, "user:u1"), "acme")
		if err != nil || a.ETag == second.ETag {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestARefusedPutChangesNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		s := openService(t, db, fileKeys(t))
		put(t, s, "acme", Change{Enabled: true, Key: new(goodKey)})
		before, err := s.Find(audittest.CallerContext(t, "user:u1"), "acme")
		if err != nil {
			t.Fatal(err)
		}

		_, err = s.Update(audittest.CallerContext(t, "user:u1"), "acme",
			Change{Enabled: true, Key: new(otherKey), KeyVersion: new(int64(7))}, "")
		if got := faultTexts(t, err); len(got) != 1 || got[0] != "key_version read_only" {
			t.Error(got)
		}

		after, err := s.Find(audittest.CallerContext(t, "user:u1"), "acme")
		if err != nil || after.ETag != before.ETag || after.Config.Key != goodKey {
			t.Errorf("%v", err)
		}
	})
}

func TestSecretsLieSealedAndReadersAreLogged(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		s := openService(t, db, fileKeys(t))
		put(t, s, "acme", Change{Enabled: true, Key: new(goodKey), Salt: new("a salt to look for")})
		var wg sync.WaitGroup

		for i := range 100 {
			wg.Go(func() {
				if _, err := s.Find(audittest.CallerContext(t, fmt.Sprintf("user:r%d", i)), "acme"); err != nil {
					t.Error(err)
				}
			})
		}

		wg.Wait()
		entries := audittest.Entries(t, audittest.New(t, db), "acme", "encryption.")
		slices.Sort(entries)

		if n := len(slices.Compact(entries)); n != 101 || entries[0] != "encryption.read user:r0 key_version:1 ok" ||
			entries[100] != "encryption.update user:u1 key_version:1 ok" {
			t.Errorf("%d entries: %q", n, entries)
		}

		var sealed string
		if err := db.QueryRowContext(t.Context(), `SELECT sealed FROM encryption_keys`).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(sealed, goodKey) || strings.Contains(sealed, "Y29ycmVjdCBob3Jz") ||
			masterkey.KeyID(sealed) == "" {
			t.Errorf("stored as %s", sealed)
		}

		// A row moved to another account cannot be unsealed.
		if _, err := db.ExecContext(t.Context(), `UPDATE encryption_keys SET account_id = 'thief'`); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Key(t.Context(), "thief", 1); fault.KindOf(err) != fault.KindInternal {
			t.Errorf("opened elsewhere: %v", err)
		}
		if _, err := s.Current(t.Context(), "acme"); err == nil {
			t.Error("enabled without a key is no reason to store in plain")
		}
	})
}

func TestNothingOfTheDatabaseFileShowsAKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.db")
	s := openService(t, testdb.Open(t, sqldb.Config{Path: file}), fileKeys(t))
	d := put(t, s, "acme", Change{Enabled: true})
	put(t, s, "acme", Change{Enabled: true, Key: new(goodKey)})
	raw, err := hex.DecodeString(d.Key)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{file, file + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}

		for _, secret := range [][]byte{[]byte(d.Key), raw, []byte(goodKey), []byte("Y29ycmVjdCBob3JzZS"),
			[]byte(d.Salt)} {
			if bytes.Contains(data, secret) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}

	for _, shown := range []string{fmt.Sprint(d), fmt.Sprintf("%+v %#v", d, d),
		fmt.Sprintf("%v %+v %#v", Key{Key: goodKey}, Key{Key: goodKey}, Key{Key: goodKey})} {
		if strings.Contains(shown, d.Key) || strings.Contains(shown, goodKey) {
			t.Errorf("printed as %s", shown)
		}
	}
}

func TestTheMasterKeyRotatesUnderWriters(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		dir := t.TempDir()
		cfg := masterkey.Settings{File: filepath.Join(dir, "master.key")}
		open := func() *masterkey.Keyring {
			k, err := masterkey.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}

		serverKeys := open()
		if _, err := serverKeys.Create(); err != nil {
			t.Fatal(err)
		}

		server := openService(t, db, serverKeys)
		for i := range 250 {
			put(t, server, fmt.Sprintf("account-%d", i), Change{Enabled: true})
		}

		before, err := server.Secrets().MasterKeys(t.Context())
		if err != nil || len(before) != 1 {
			t.Fatal(before, err)
		}

		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					if _, err := server.Update(audittest.CallerContext(t, "u"), "busy",
						Change{Enabled: true, Key: new(fmt.Sprintf("busy account's key number %9d", i))},
						""); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})

		command := open()
		var last, total int
		got, err := masterkey.Rotate(t.Context(), command,
			[]masterkey.SecretStore{openService(t, db, command).Secrets()}, func(d, n int) { last, total = d, n })
		close(stop)
		wg.Wait()
		if err != nil || last < 250 && total < 250 {
			t.Fatalf("%d of %d: %v", last, total, err)
		}

		after, err := server.Secrets().MasterKeys(t.Context())
		if err != nil || len(after) != 1 || after[0] != got.KeyID || after[0] == before[0] {
			t.Fatalf("in use: %v, %v", after, err)
		}

		fresh := openService(t, db, open()) // a server with only the new file
		for _, account := range []string{"account-0", "account-249", "busy"} {
			if a, err := fresh.Find(audittest.CallerContext(t, "u"), account); err != nil || a.Config.Key == "" {
				t.Errorf("%s: %v", account, err)
			}
		}
	})
}

func TestStartingWithoutTheMasterKeyIsRefused(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		put(t, openService(t, db, fileKeys(t)), "acme", Change{Enabled: true})
		missing, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
		if err != nil {
			t.Fatal(err)
		}

		for name, keys := range map[string]*masterkey.Keyring{"no key": missing, "another key": fileKeys(t)} {
			if _, err := New(t.Context(), db, keys, audittest.New(t, db), prometheus.NewRegistry()); err == nil ||
				!strings.Contains(err.Error(), "TRUNKLINE_MASTER_KEY") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAStoreThatFailsAnswersWithUpdateFailed(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite(t))
	s := openService(t, db, fileKeys(t))
	if _, err := db.ExecContext(t.Context(), `DROP TABLE encryption_keys`); err != nil {
		t.Fatal(err)
	}

	_, err := s.Update(audittest.CallerContext(t, "u"), "acme", Change{Enabled: true}, "")
	if f := fault.As(err); f.Kind != fault.KindInternal || f.Message != MessageUpdateFailed {
		t.Errorf("%v", err)
	}
	if _, err := s.Current(t.Context(), "acme"); err == nil {
		t.Error("an unreadable configuration is no reason to store in plain")
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := s.Find(ended, "acme"); err == nil {
		t.Error("read under an ended context")
	}
}

func TestReadsAtTheSameTimeAreAllLogged(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		s := openService(t, db, fileKeys(t))
		const readers, each = 40, 5
		var wg sync.WaitGroup

		for r := range readers {
			wg.Go(func() {
				for range each {
					if _, err := s.Find(audittest.CallerContext(t, fmt.Sprint("user:", r)), "acme"); err != nil {
						t.Error(err)
					}
				}
			})
		}

		wg.Wait()
		entries := audittest.Entries(t, audittest.New(t, db), "acme", "encryption.read")
		if lines, who := len(entries), len(slices.Compact(entries)); lines != readers*each || who != readers {
			t.Errorf("%d entries of %d readers", lines, who)
		}
	})
}

// Accounts share pages of the tables, so serializable transactions on PostgreSQL would
// abort each other.
func TestManyAccountsChangeAtOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		keys := fileKeys(t)
		nodes := []*Service{openService(t, db, keys), openService(t, db, keys)}
		var wg sync.WaitGroup

		for w := range 32 {
			wg.Go(func() {
				for i := range 10 {
					key := fmt.Sprintf("writer %d's very own key number %d", w, i)
					if _, err := nodes[w%2].Update(audittest.CallerContext(t, "u"), fmt.Sprint("account-", w),
						Change{Enabled: true, Key: &key}, ""); err != nil {
						t.Error(err)
					}
				}
			})
		}

		wg.Wait()
	})
}

func TestAReadThatCannotBeLoggedIsRefused(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite(t))
	s := openService(t, db, fileKeys(t))
	put(t, s, "acme", Change{Enabled: true})

	if _, err := db.ExecContext(t.Context(), `DROP TABLE audit_pending`); err != nil {
		t.Fatal(err)
	}
	if a, err := s.Find(audittest.CallerContext(t, "u"), "acme"); err == nil {
		t.Errorf("answered %v", a)
	}

	var n int
	if _, err := s.Update(audittest.CallerContext(t, "u"), "acme", Change{Enabled: true, Key: new(goodKey)},
		""); err == nil {
		t.Error("changed without a log")
	}
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM encryption_keys`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d keys, %v", n, err)
	}
}
