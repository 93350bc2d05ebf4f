package identity

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
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
	ring, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func md5Hex(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// loginPhone authenticates as alice's phone with a password, from an address.
func (s *testService) loginPhone(t *testing.T, password, address string) error {
	t.Helper()
	want := md5Hex("1001:demo.local:" + password)
	return s.AuthenticatePhone(t.Context(), "demo.local", "1001", address, func(h HA1) bool { return h.MD5 == want })
}

func (s *testService) portal(t *testing.T, password, address string) error {
	t.Helper()
	_, err := s.Login(t.Context(),
		LoginRequest{Username: "alice", Password: password, Domain: "demo.local", Address: address})
	return err
}

const demoPassword = "only for the tests 42"

func (s *testService) demoPhones(t *testing.T) (devicePassword string) {
	t.Helper()
	if _, err := s.SeedDemo(t.Context(), demoPassword); err != nil {
		t.Fatal(err)
	}
	devicePassword, _, err := s.CreateDevice(t.Context(), "demo", "alice", "")
	if err != nil {
		t.Fatal(err)
	}
	return devicePassword
}

func TestAPhoneAuthenticatesWithADevicePassword(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{})
		first := s.demoPhones(t)
		second, d, err := s.CreateDevice(t.Context(), "demo.local", "Alice", "desk phone")
		if err != nil || len(second) < 26 || first == second {
			t.Fatalf("%q and %q: %v", first, second, err)
		}

		for _, right := range []string{first, second} {
			if err := s.loginPhone(t, right, "192.0.2.1"); err != nil {
				t.Errorf("a device password: %v", err)
			}
		}

		strong := sha256.Sum256([]byte("1001:demo.local:" + first))
		if err := s.AuthenticatePhone(t.Context(), "Demo.Local", "1001", "192.0.2.1", func(h HA1) bool {
			return h.SHA256 == hex.EncodeToString(strong[:])
		}); err != nil {
			t.Errorf("with SHA-256: %v", err)
		}

		wantKind(t, "the portal password", s.loginPhone(t, demoPassword, "192.0.2.1"), fault.KindUnauthenticated)
		if logged := s.logged.String(); !strings.Contains(logged, "action=sip.register_failed") ||
			!strings.Contains(logged, "actor=sip:1001 address=192.0.2.1") ||
			!strings.Contains(logged, "action=device.create") {
			t.Errorf("the audit log has %s", logged)
		}

		wantKind(t, "a device password at the portal", s.portal(t, first, "192.0.2.1"), fault.KindUnauthenticated)
		wantKind(t, "no such extension",
			s.AuthenticatePhone(t.Context(), "demo.local", "1009", "", func(HA1) bool { return true }),
			fault.KindUnauthenticated)

		devices, err := s.ListDevices(t.Context(), "demo", "alice")
		if err != nil || len(devices) != 2 || !slices.Contains(devices, d) || d.Name != "desk phone" {
			t.Errorf("devices %+v, %v", devices, err)
		}

		if err := s.DeleteDevice(t.Context(), d.ID); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "a deleted device", s.loginPhone(t, second, "192.0.2.1"), fault.KindUnauthenticated)
		if err := s.loginPhone(t, first, "192.0.2.1"); err != nil {
			t.Errorf("the other device: %v", err)
		}

		wantKind(t, "deleting it again", s.DeleteDevice(t.Context(), d.ID), fault.KindNotFound)
		for range maxDevices - 1 {
			if _, _, err := s.CreateDevice(t.Context(), "demo", "alice", ""); err != nil {
				t.Fatal(err)
			}
		}

		_, _, err = s.CreateDevice(t.Context(), "demo", "alice", "")
		wantKind(t, "one device too many", err, fault.KindConflict)
		_, _, err = s.CreateDevice(t.Context(), "demo", "admin", "")
		wantKind(t, "a user without an extension", err, fault.KindUnprocessable)
		_, _, err = s.CreateDevice(t.Context(), "demo", "nobody", "")
		wantKind(t, "no user", err, fault.KindNotFound)

		var stored string
		if err := s.db.QueryRowContext(t.Context(),
			`SELECT secret FROM identity_device_passwords WHERE id <> $1 ORDER BY created_at LIMIT 1`,
			d.ID).Scan(&stored); err != nil {
			t.Fatal(err)
		}

		if strings.Contains(stored, md5Hex("1001:demo.local:"+first)) || strings.Contains(stored, first) ||
			strings.Contains(s.logged.String(), first) {
			t.Error("a device's secret is in the database or the log in plain")
		}
		if err := s.DeleteUser(t.Context(), "demo", "alice"); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "a deleted user", s.loginPhone(t, first, "192.0.2.1"), fault.KindUnauthenticated)
	})
}

func TestPhone(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	s.demoPhones(t)
	p, err := s.FindPhone(t.Context(), "Demo.local", "1001")
	if err != nil || p.AccountID != "demo" || p.Domain != "demo.local" || p.Extension != "1001" {
		t.Errorf("got %+v, %v", p, err)
	}

	alice, err := s.FindUser(t.Context(), p.UserID)
	if err != nil || alice.Username != "alice" {
		t.Errorf("the phone is %v's: %v", alice, err)
	}

	for _, unknown := range [][2]string{{"demo.local", "1009"}, {"other.local", "1001"}, {"demo.local", ""},
		{"demo.local", "10\x0001"}} {
		if p, err := s.FindPhone(t.Context(), unknown[0], unknown[1]); p != (Phone{}) ||
			fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("%q: %+v, %v", unknown, p, err)
		}
	}
}

func configWithPortalPasswords(rule string) Config {
	s := DefaultSettings()
	s.SIPPortalPassword = rule
	return Config{Settings: s}
}

func TestPortalPasswordsOfPhones(t *testing.T) {
	for rule, accepted := range map[string]bool{RefusePortalPassword: false, WarnPortalPassword: true,
		AllowPortalPassword: true} {
		t.Run(string(rule), func(t *testing.T) {
			testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
				s := startService(t, db, configWithPortalPasswords(rule))
				s.demoPhones(t)
				if err := s.loginPhone(t, demoPassword, "192.0.2.1"); (err == nil) != accepted {
					t.Errorf("got %v", err)
				}
				if warned := strings.Contains(s.logged.String(),
					"device password"); warned != (rule == WarnPortalPassword) {
					t.Errorf("warned: %v", warned)
				}
			})
		})
	}

	if err := setting.Validate("auth", configWithPortalPasswords("perhaps").Settings); err == nil {
		t.Error("an unknown rule is accepted")
	}
}

func TestPortalHA1IsStoredAtTheNextLogin(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, configWithPortalPasswords(AllowPortalPassword))
		shared := s.Tokens.keyring
		s.useKeys(noKeys(t))

		if _, err := s.SeedDemo(t.Context(), demoPassword); err != nil {
			t.Fatal(err)
		}

		_, _, err := s.CreateDevice(t.Context(), "demo", "alice", "")
		wantKind(t, "a device without a master key", err, fault.KindUnavailable)
		wantKind(t, "without a master key", s.loginPhone(t, demoPassword, ""), fault.KindUnauthenticated)
		s.useKeys(shared)
		s.changes.loadedRevision = revision{}

		if err := s.changes.poll(t.Context()); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "a wrong password", s.portal(t, "another password", ""), fault.KindUnauthenticated)
		wantKind(t, "after a wrong password", s.loginPhone(t, demoPassword, ""), fault.KindUnauthenticated)
		if err := s.portal(t, demoPassword, ""); err != nil {
			t.Fatal(err)
		}
		if err := s.loginPhone(t, demoPassword, ""); err != nil {
			t.Error(err)
		}
	})
}

func TestDevicesFollowTheMasterKey(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, configWithPortalPasswords(AllowPortalPassword))
		keys := testKeys(t)
		s.useKeys(keys)
		device := s.demoPhones(t)
		next, err := keys.AddKey()
		if err != nil {
			t.Fatal(err)
		}

		for _, table := range Secrets(s.db, keys)[:2] {
			if err := table.Reseal(t.Context(), func(int, int) {}); err != nil {
				t.Fatal(err)
			}
			if ids, err := table.MasterKeys(t.Context()); err != nil || len(ids) != 1 || ids[0] != next {
				t.Errorf("in use: %v, %v; want %s", ids, err, next)
			}
		}

		if err := keys.RemoveUnused(nil); err != nil {
			t.Fatal(err)
		}

		for _, password := range []string{device, demoPassword} {
			if err := s.loginPhone(t, password, ""); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFailuresCountOnEveryInterface: ten failures of one user by phone, portal and
// channel together lock the user out of all three, and a success does not reset the
// count.
func TestFailuresCountOnEveryInterface(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{})
		device := s.demoPhones(t)
		bobs, _, err := s.CreateDevice(t.Context(), "demo", "bob", "")
		if err != nil {
			t.Fatal(err)
		}

		bob := func() {
			t.Helper()
			want := md5Hex("1002:demo.local:" + bobs)
			if err := s.AuthenticatePhone(t.Context(), "demo.local", "1002", "192.0.2.66",
				func(h HA1) bool { return h.MD5 == want }); err != nil {
				t.Errorf("bob at the attacker's address: %v", err)
			}
		}

		for i := range failuresPerUser {
			address := fmt.Sprintf("192.0.2.%d", 60+i)
			var err error
			switch i % 3 {
			case 0:
				err = s.loginPhone(t, "wrong", address)
			case 1:
				err = s.portal(t, "wrong", address)
			case 2:
				_, _, err = s.EventsLogin(t.Context(),
					LoginRequest{Username: "ALICE", Password: "wrong", Domain: "demo.local", Address: address},
					Filter{})
			}

			wantKind(t, fmt.Sprint("failure ", i), err, fault.KindUnauthenticated)
			bob()
		}

		wantKind(t, "the portal", s.portal(t, demoPassword, "192.0.2.66"), fault.KindLimited)
		wantKind(t, "a phone that guesses", s.loginPhone(t, "wrong", "192.0.2.66"), fault.KindLimited)
		if err := s.loginPhone(t, device, "192.0.2.67"); err != nil {
			t.Error("a phone with its device password, which nobody guesses:", err)
		}

		bob()
	})
}

func TestGuessesAtOnceDoNotPassTheLimit(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	s.demoPhones(t)

	guesses := make(chan bool, 200)
	for range cap(guesses) {
		go func() {
			compared := false
			_ = s.AuthenticatePhone(t.Context(), "demo.local", "1001", "192.0.2.1",
				func(HA1) bool { compared = true; return false })
			guesses <- compared
		}()
	}

	compared := 0
	for range cap(guesses) {
		if <-guesses {
			compared++
		}
	}

	if compared != failuresPerUser {
		t.Errorf("%d guesses were compared", compared)
	}
}

// TestLockoutIsNoWeapon: a user who authenticated from an address within 30 days can log
// in from there while others guess elsewhere, by phone or portal.
func TestLockoutIsNoWeapon(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		c := newClock()
		s := startService(t, db, Config{Now: c.now})
		device := s.demoPhones(t)
		const office, home, v6 = "192.0.2.1", "198.51.100.7", "2001:db8::1"
		if err := s.loginPhone(t, device, office); err != nil {
			t.Fatal(err)
		}
		if err := s.portal(t, demoPassword, v6); err != nil {
			t.Fatal(err)
		}

		attack := func() {
			for i := range 2 * failuresPerUser {
				_ = s.portal(t, "wrong", fmt.Sprintf("203.0.113.%d", i))
			}
		}

		attack()
		for range 3 {
			if err := s.loginPhone(t, device, office); err != nil {
				t.Errorf("the phone from its address: %v", err)
			}
			if err := s.portal(t, demoPassword, office); err != nil {
				t.Errorf("the user from the phone's address: %v", err)
			}
			if err := s.loginPhone(t, device, "2001:db8::2"); err != nil {
				t.Errorf("from the same IPv6 network: %v", err)
			}
		}

		wantKind(t, "from a new address", s.portal(t, demoPassword, home), fault.KindLimited)
		wantKind(t, "from an unknown address", s.portal(t, demoPassword, ""), fault.KindLimited)
		for i := range failuresPerUser {
			if err := s.portal(t, "wrong", office); fault.KindOf(err) != fault.KindUnauthenticated &&
				i < failuresPerUser-1 {
				t.Errorf("failure %d at the known address: %v", i, err)
			}
		}

		wantKind(t, "guesses at the known address", s.portal(t, demoPassword, office), fault.KindLimited)

		c.add(knownAddressTTL + time.Minute)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "30 days later", s.portal(t, demoPassword, "2001:db8::1"), fault.KindLimited)
		var rows int
		if err := s.db.QueryRowContext(t.Context(),
			`SELECT COUNT(*) FROM identity_known_addresses`).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d addresses are stored: %v", rows, err)
		}
	})
}

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
			if got := s.limits.addresses.has(t.Context(), newLoginAttempt("demo.local", "alice",
				address)); got != want {
				t.Errorf("%s is known: %v", address, got)
			}
		}

		if s.limits.addresses.has(t.Context(), newLoginAttempt("demo.local", "bob", "192.0.2.24")) {
			t.Error("alice's address is known as bob's")
		}

		other := startService(t, db, Config{Now: c.now}) // another node
		if !other.limits.addresses.has(t.Context(), newLoginAttempt("demo.local", "alice", "192.0.2.24")) {
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

		if _, err := testKeys(t).Unseal(secret, addressKeyTable, addressKeyID); err == nil {
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
		known := func() bool { return s.limits.addresses.has(t.Context(), login.attempt()) }

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
