package identity

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestKnownAddressesAreBoundedAndHashed(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		c := newClock()
		s := startService(t, db, Config{Now: c.now})
		device := s.demoPhones(t)

		for i := range maxAddressesPerUser + 5 {
			c.add(time.Minute)
			if err := s.loginPhone(t, device, fmt.Sprintf("192.0.2.%d", i)); err != nil {
				t.Fatal(err)
			}
		}

		rows, err := s.db.QueryContext(t.Context(), `SELECT hash FROM identity_known_addresses`)
		hashes, err := sqldb.Collect(rows, err, "reading", sqldb.ScanColumn[string])
		if err != nil || len(hashes) != maxAddressesPerUser || strings.Contains(strings.Join(hashes, " "), "192.0") {
			t.Errorf("%d addresses: %v, %v", len(hashes), hashes, err)
		}

		for address, want := range map[string]bool{"192.0.2.0": false, "192.0.2.4": false, "192.0.2.5": true,
			"192.0.2.24": true} {
			if got := s.limits.addresses.knownOfUser(t.Context(), newLoginAttempt("demo.local", "alice",
				address)); got != want {
				t.Errorf("%s is known: %v", address, got)
			}
		}

		if s.limits.addresses.knownOfUser(t.Context(), newLoginAttempt("demo.local", "bob", "192.0.2.24")) {
			t.Error("alice's address is known as bob's")
		}

		other := startService(t, db, Config{Now: c.now}) // another node
		if !other.limits.addresses.knownOfUser(t.Context(), newLoginAttempt("demo.local", "alice", "192.0.2.24")) {
			t.Error("the address is not known on another node")
		}
	})
}

// All IPv4 addresses can be tried in seconds, so without a key a copy of the database
// would reveal the addresses of users.
func TestHashesOfKnownAddressesNeedTheMasterKey(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{}).demo(t)
		s.mustLogin(t, "alice")
		a := demoLogin("alice").attempt()
		var hash, secret string
		err := s.db.QueryRowContext(t.Context(),
			`SELECT a.hash, k.secret FROM identity_known_addresses a, identity_address_keys k`).Scan(&hash, &secret)
		if err != nil {
			t.Fatal(err)
		}

		name := a.user + "\x00" + a.network
		for _, plain := range []string{subjectHash("known", name), hashSecret(name), hashSecret("known\x00" + name)} {
			if hash == plain {
				t.Error("the hash has no key")
			}
		}

		if _, err := newRing(t).Unseal(secret, addressKeyTable, addressKeyID); err == nil {
			t.Error("another master key opens the key of the hashes")
		}

		elsewhere := startService(t, sqldb.Config{Path: filepath.Join(t.TempDir(), "other.db")}, Config{}).demo(t)
		elsewhere.mustLogin(t, "alice")
		var other string
		if err := elsewhere.db.QueryRowContext(t.Context(),
			`SELECT hash FROM identity_known_addresses`).Scan(&other); err != nil || other == hash {
			t.Errorf("two installations have the same hash: %v", err)
		}
	})
}

// A correct password without the second factor does not make its address known.
func TestAPasswordWithoutItsCodeMakesNoAddressKnown(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		c := newClock()
		s := startService(t, db, Config{Now: c.now}).demo(t)
		enrolment, _, err := s.EnrolOTP(t.Context(), "demo", "admin")
		if err != nil {
			t.Fatal(err)
		}

		login := demoLogin("admin")
		login.Address = "203.0.113.9"
		known := func() bool { return s.limits.addresses.knownOfUser(t.Context(), login.attempt()) }

		for _, code := range []string{"", "000000"} {
			login.OTP = code
			if _, err := s.Login(t.Context(), login); err == nil {
				t.Fatalf("logged in with the code %q", code)
			}
			if known() {
				t.Errorf("the code %q makes the address known", code)
			}
		}

		login.OTP = must(totp.GenerateCode(enrolment.Secret, c.now()))(t)
		if _, err := s.Login(t.Context(), login); err != nil || !known() {
			t.Errorf("after the whole login: known %v, %v", known(), err)
		}
	})
}
