package identity

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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

func (s *testService) loginPortal(t *testing.T, password, address string) error {
	t.Helper()
	_, err := s.Login(t.Context(),
		LoginRequest{Username: "alice", Password: password, Domain: "demo.local", Address: address})
	return err
}

// demoPhones stores the demo users and a device of alice.
func (s *testService) demoPhones(t *testing.T) (devicePassword string) {
	t.Helper()
	s.demo(t)
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

		wantKind(t, "the portal password", s.loginPhone(t, password, "192.0.2.1"), fault.KindUnauthenticated)
		if logged := s.logged.String(); !strings.Contains(logged, "action=sip.register_failed") ||
			!strings.Contains(logged, "actor=sip:1001 address=192.0.2.1") ||
			!strings.Contains(logged, "action=device.create") {
			t.Errorf("the audit log has %s", logged)
		}

		wantKind(t, "a device password at the portal", s.loginPortal(t, first, "192.0.2.1"), fault.KindUnauthenticated)
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

func TestFindPhone(t *testing.T) {
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
				if err := s.loginPhone(t, password, "192.0.2.1"); (err == nil) != accepted {
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
		s.useKeys(emptyRing(t))

		if _, err := s.SeedDemo(t.Context(), password); err != nil {
			t.Fatal(err)
		}

		_, _, err := s.CreateDevice(t.Context(), "demo", "alice", "")
		wantKind(t, "a device without a master key", err, fault.KindUnavailable)
		wantKind(t, "without a master key", s.loginPhone(t, password, ""), fault.KindUnauthenticated)
		s.useKeys(shared)
		s.changes.loadedRevision = revision{}

		if err := s.changes.poll(t.Context()); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "a wrong password", s.loginPortal(t, "another password", ""), fault.KindUnauthenticated)
		wantKind(t, "after a wrong password", s.loginPhone(t, password, ""), fault.KindUnauthenticated)
		if err := s.loginPortal(t, password, ""); err != nil {
			t.Fatal(err)
		}
		if err := s.loginPhone(t, password, ""); err != nil {
			t.Error(err)
		}
	})
}

func TestDevicesFollowTheMasterKey(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, configWithPortalPasswords(AllowPortalPassword))
		keys := newRing(t)
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

		for _, given := range []string{device, password} {
			if err := s.loginPhone(t, given, ""); err != nil {
				t.Error(err)
			}
		}
	})
}
