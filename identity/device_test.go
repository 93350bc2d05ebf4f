package identity

import (
	"crypto/md5"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// testKeys returns a ring with one key of its own.
func testKeys(t testing.TB) *masterkey.Keyring {
	t.Helper()
	ring := noKeys(t)
	if _, err := ring.Create(); err != nil {
		t.Fatal(err)
	}
	return ring
}

func noKeys(t testing.TB) *masterkey.Keyring {
	t.Helper()
	ring, err := masterkey.Open(masterkey.Config{File: filepath.Join(t.TempDir(), "master.key")})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func digest(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestDevice(t *testing.T) {
	onBoth(t, func(t *testing.T, db sqldb.Config) {
		s := start(t, db, Config{})
		if _, err := s.SeedDemo(t.Context(), "a demo password"); err != nil {
			t.Fatal(err)
		}
		d, err := s.Device(t.Context(), "Demo.local", "1001")
		if err != nil {
			t.Fatal(err)
		}
		if want := digest("1001:demo.local:a demo password"); d.HA1 != want || d.AccountID != "demo" || d.Domain != "demo.local" {
			t.Errorf("got %+v, want HA1 %s", d, want)
		}
		alice, err := s.User(t.Context(), d.UserID)
		if err != nil || alice.Username != "alice" {
			t.Errorf("the phone is %v's: %v", alice, err)
		}
		for _, unknown := range [][2]string{{"demo.local", "1009"}, {"other.local", "1001"}, {"demo.local", ""}, {"demo.local", "10\x0001"}} {
			if _, err := s.Device(t.Context(), unknown[0], unknown[1]); fault.KindOf(err) != fault.KindNotFound {
				t.Errorf("%q: %v", unknown, err)
			}
		}
		var stored string
		if err := s.db.QueryRowContext(t.Context(), `SELECT ha1 FROM identity_devices WHERE user_id = $1`, d.UserID).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(stored, d.HA1) {
			t.Error("the digest's secret is kept in plain")
		}
		if err := s.DeleteUser(t.Context(), "demo", "alice"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Device(t.Context(), "demo.local", "1001"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("of a deleted user: %v", err)
		}
	})
}

func TestDeviceIsMadeAtTheNextLogin(t *testing.T) {
	onBoth(t, func(t *testing.T, db sqldb.Config) {
		s := start(t, db, Config{})
		keys := noKeys(t)
		s.keyring = keys
		if _, err := s.SeedDemo(t.Context(), "a demo password"); err != nil {
			t.Fatal(err)
		}
		login := Credentials{Username: "bob", Password: "a demo password", Domain: "demo.local"}
		if _, err := s.Login(t.Context(), login); err != nil {
			t.Fatalf("without a master key: %v", err)
		}
		if _, err := s.Device(t.Context(), "demo.local", "1002"); fault.KindOf(err) != fault.KindNotFound {
			t.Fatalf("without a master key: %v", err)
		}
		if _, err := keys.Create(); err != nil {
			t.Fatal(err)
		}
		wrong := login
		wrong.Password = "another password"
		if _, err := s.Login(t.Context(), wrong); err == nil {
			t.Fatal("logged in with a wrong password")
		}
		if _, err := s.Device(t.Context(), "demo.local", "1002"); fault.KindOf(err) != fault.KindNotFound {
			t.Fatalf("a wrong password made a phone: %v", err)
		}
		if _, err := s.Login(t.Context(), login); err != nil {
			t.Fatal(err)
		}
		if d, err := s.Device(t.Context(), "demo.local", "1002"); err != nil || d.HA1 != digest("1002:demo.local:a demo password") {
			t.Errorf("got %v, %v", d, err)
		}
	})
}

func TestDevicesFollowTheMasterKey(t *testing.T) {
	onBoth(t, func(t *testing.T, db sqldb.Config) {
		s := start(t, db, Config{})
		keys := testKeys(t)
		s.keyring = keys
		if _, err := s.SeedDemo(t.Context(), "a demo password"); err != nil {
			t.Fatal(err)
		}
		before, err := s.Device(t.Context(), "demo.local", "1001")
		if err != nil {
			t.Fatal(err)
		}
		next, err := keys.Next()
		if err != nil {
			t.Fatal(err)
		}
		var told []int
		if err := s.Secrets().Reseal(t.Context(), func(done, total int) { told = append(told, done, total) }); err != nil {
			t.Fatal(err)
		}
		if len(told) != 2 || told[0] != 2 || told[1] != 2 {
			t.Errorf("progress told: %v", told)
		}
		if ids, err := s.Secrets().MasterKeys(t.Context()); err != nil || len(ids) != 1 || ids[0] != next {
			t.Errorf("in use: %v, %v; want %s", ids, err, next)
		}
		if err := keys.Retire(nil); err != nil {
			t.Fatal(err)
		}
		if after, err := s.Device(t.Context(), "demo.local", "1001"); err != nil || after != before {
			t.Errorf("got %v, %v", after, err)
		}
	})
}
