package identity

import (
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// Passwords that attackers try first are refused whatever their length, with the words of the
// user, the account and the product.
func TestEasyPasswordsAreRefused(t *testing.T) {
	words := ownWords("anna.schmidt", Account{ID: "acme", Name: "Acme Berlin", Domain: "berlin.acme.example"})
	for _, password := range []string{
		"passwordpassword", "123456789012", "trunkline", "trunkline-trunkline", "Trunkl1ne2026!", "qwertz123",
		"qwertzuiop12", "P@ssw0rd1", "P@ssw0rd2026!",
		"annaschmidt2026", "Schm1dt!Anna", "acmeberlin1", "berlin.acme.example", "anna-acme-berlin",
		"aaaaaaaaaaaaaaaa", "abcabcabcabcabc", "abcdefghijklmnop", "1q2w3e4r5t6z", "20.04.1987", "Passwort123!",
		"correct-horse", "ｐａｓｓｗｏｒｄ１２３",
		strings.Repeat("a", 1000), "password" + strings.Repeat("!", 300),
	} {
		var bad fieldProblems
		bad.checkStrength("password", password, words)
		if len(bad) != 1 || bad[0].Code != codeTooCommon {
			t.Errorf("%q: %v (%.0f bits)", password, bad, passwordBits(password, words))
		}
	}

	for _, password := range []string{"kX7qv2Lp", "correct horse battery", "ohne-worte-im-wald", "a3f9c07be1d2",
		"Füße über Öl 9", strings.Repeat("0f1e2d3c", 8)[:16] + "kX7q"} {
		if err := checkNewPassword("password", password, words); err != nil {
			t.Errorf("%q: %v (%.0f bits)", password, err, passwordBits(password, words))
		}
	}

	var bad fieldProblems
	bad.checkStrength("password", "kX7qv2L", words)
	if len(bad) != 1 || bad[0].Code != codeTooShort {
		t.Errorf("seven characters: %v", bad)
	}
}

// Every door by which a password is set refuses an easy one; a password that was stored
// before still logs in.
func TestEveryDoorRefusesEasyPasswords(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	ctx := t.Context()
	alice := s.mustAuthenticate(t, s.mustLogin(t, "alice").AccessToken)

	easy, withOwnName := "passwordpassword", "alice.demo.local"
	for _, weak := range []string{easy, withOwnName} {
		_, err := s.CreateUser(ctx, NewUser{Account: "demo", Username: "alice.demo", Password: weak})
		wantKind(t, "user create", err, fault.KindInvalid)
		_, err = s.UpdateUser(ctx, alice.UserID, UserUpdate{Role: RoleUser, PresenceID: "1001", Password: &weak})
		wantKind(t, "user update", err, fault.KindInvalid)
		wantKind(t, "user password", s.SetPassword(ctx, "demo", "alice", weak), fault.KindInvalid)
		wantKind(t, "own password", s.ChangePassword(ctx, alice, password, weak, "192.0.2.1"), fault.KindInvalid)
	}

	empty := startService(t, testdb.SQLite(t), Config{})
	_, err := empty.SeedDemo(ctx, easy)
	wantKind(t, "demo", err, fault.KindInvalid)
	wantKind(t, "directory file",
		empty.Seed(ctx, []byte(
			`{accounts: [{id: a, name: a, domain: a.example}], users: [{account: a, username: root, password: `+easy+`}]}`)),
		fault.KindInvalid)

	hash := must(s.Directory.passwords.Hash(ctx, easy))(t)
	must(s.db.ExecContext(ctx, `UPDATE identity_users SET password = $1 WHERE id = $2`, hash, alice.UserID))(t)
	login := demoLogin("alice")
	login.Password = easy
	must(s.Login(ctx, login))(t)
}

// The estimate costs bounded time, also for what was chosen to cost the library most.
func TestTheEstimateCostsBoundedTime(t *testing.T) {
	words := ownWords(strings.Repeat("u", maxNameLength), Account{Domain: strings.Repeat("d.", maxDomainLength/2)})
	for _, password := range []string{
		strings.Repeat("4@8({[<369&#!1/|0$5+7%2", 40), strings.Repeat("1/1/1999", 120), strings.Repeat("qwerty", 150),
		strings.Repeat("pass", 250), strings.Repeat("11111111", 128), strings.Repeat("\u1f82", 300),
		strings.Repeat("\ufdfa", 300),
	} {
		begin := time.Now()
		passwordBits(password[:min(len(password), maxPasswordLength)], words)
		if took := time.Since(begin); took > time.Minute { // on a loaded machine; the library alone takes minutes
			t.Errorf("%.20q took %v", password, took)
		}
	}
}

func FuzzPasswordBits(f *testing.F) {
	for _, seed := range []string{"", "P@ssw0rd1", "\xff\xfe", "1.1.1999", "ﷺ", "\x00", "qwertz"} {
		f.Add(seed, "alice")
	}
	f.Fuzz(func(t *testing.T, password, word string) {
		var bad fieldProblems
		bad.checkStrength("password", password, ownWords(word, Account{Domain: word}))
	})
}

func TestNewPasswordsAreLongOrUncommon(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	for password, code := range map[string]string{
		"":                        codeRequired,
		"seven77":                 codeTooShort,
		"äöüßäöü":                 codeTooShort, // characters, not bytes
		"password1":               codeTooCommon,
		"PassWord1":               codeTooCommon,
		"sunshine":                codeTooCommon,
		"elizabeth":               codeTooCommon,
		"kx83-vq0":                "",
		"passwordpassword":        codeTooCommon,
		"twelve chars, river":     "",
		strings.Repeat("a", 1025): codeTooLong,
	} {
		_, err := s.CreateUser(t.Context(), NewUser{Account: "demo", Username: sqldb.NewID(), Password: password})
		got := ""
		if err != nil {
			got = fault.As(err).Fields[0].Code
		}

		if got != code {
			t.Errorf("%.20q: %q, want %q (%v)", password, got, code, err)
		}
	}

	err := startService(t, testdb.SQLite(t), Config{}).Seed(t.Context(), []byte(`
accounts: [{id: a, name: a, domain: a.local}]
users: [{account: a, username: u, password: password1}]`))
	if err == nil || fault.As(err).Fields[0].Field != "users[0].password" {
		t.Errorf("a directory file: %v", err)
	}

	// A file that was accepted once does not stop a later start.
	if err := s.Seed(t.Context(), []byte(`
accounts: [{id: a, name: a, domain: a.local}]
users: [{account: a, username: u, password: old}]`)); err != nil {
		t.Error(err)
	}

	_, err = startService(t, testdb.SQLite(t), Config{}).SeedDemo(t.Context(), "demo")
	wantKind(t, "a weak demo password", err, fault.KindInvalid)
}
