package identity

import (
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestBadAccountsAndUsersAreRefusedFieldByField(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	long := strings.Repeat("x", 300)
	account := func(id, name, domain, parent string) error {
		_, err := s.CreateAccount(t.Context(), NewAccount{ID: id, Name: name, Domain: domain, Parent: parent})
		return err
	}

	user := func(username, password, presence string, role Role) error {
		_, err := s.CreateUser(t.Context(),
			NewUser{Account: "demo", Username: username, Password: password, PresenceID: presence, Role: role})
		return err
	}

	for want, err := range map[string]error{
		"id invalid":              account("a b", "n", "d", ""),
		"id invalid ":             account(strings.Repeat("x", 65), "n", "d", ""),
		"name required":           account("a", "", "d", ""),
		"name too_long":           account("a", long, "d", ""),
		"name invalid":            account("a", "n\x00", "d", ""),
		"name invalid ":           account("a", " n", "d", ""),
		"name invalid  ":          account("a", "n\xff", "d", ""),
		"domain required":         account("a", "n", "", ""),
		"domain too_long":         account("a", "n", long, ""),
		"domain invalid":          account("a", "n", "d d", ""),
		"parent unknown_account":  account("a", "n", "d", "nowhere"),
		"parent unknown_account ": account("a", "n", "d", "\x00"),
		"username required":       user("", password, "", RoleUser),
		"username too_long":       user(long, password, "", RoleUser),
		"username invalid":        user("u\n", password, "", RoleUser),
		"password required":       user("u", "", "", RoleUser),
		"password too_long":       user("u", strings.Repeat("p", 1025), "", RoleUser),
		"presence_id too_long":    user("u", password, long, RoleUser),
		"presence_id invalid":     user("u", password, "10 01", RoleUser),
		"role invalid":            user("u", password, "", "root"),
	} {
		f := fault.As(err)
		if f.Kind != fault.KindInvalid || len(f.Fields) != 1 ||
			f.Fields[0].Field+" "+f.Fields[0].Code != strings.TrimSpace(want) {
			t.Errorf("want %q, got %v %+v", want, err, f.Fields)
		}
	}
}

func TestSQLInAnyFieldIsOnlyText(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		for _, text := range []string{
			`'; DROP TABLE identity_users; --`, `" OR 1=1 --`, `$1`, `%`, `\'`, `a'||'b`,
			`x) UNION SELECT seed FROM identity_signing_keys --`,
		} {
			domain := strings.ReplaceAll(text, " ", "_")
			account := must(s.CreateAccount(t.Context(), NewAccount{Name: text, Domain: domain, Parent: "demo"}))(t)
			user := must(s.CreateUser(t.Context(),
				NewUser{Account: text, Username: text, Password: text + " as a password, river",
					PresenceID: domain}))(t)
			if err := s.SetClickToCallID(t.Context(), user.ID, text); err != nil {
				t.Error(err)
			}
			if got := must(s.FindUser(t.Context(), user.ID))(t); got.Username != text || got.ClickToCallID != text ||
				got.PresenceID != domain {
				t.Errorf("got %+v", got)
			}

			p := s.mustAuthenticate(t,
				must(s.Login(t.Context(),
					LoginRequest{Username: text, Password: text + " as a password, river",
						Domain: domain}))(t).AccessToken)
			if p.AccountID != account.ID || p.Username != text {
				t.Errorf("principal %+v", p)
			}

			_, key, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: text, Name: text})
			if err != nil || key.Name != text {
				t.Errorf("key %+v: %v", key, err)
			}

			_, err = s.FindUser(t.Context(), text)
			wantKind(t, "User", err, fault.KindNotFound)
			wantKind(t, "DeleteUser", s.DeleteUser(t.Context(), "demo", text), fault.KindNotFound)
			wantKind(t, "DeleteAccount", s.deleteAnyVersion(t.Context(), text+"x"), fault.KindNotFound)

			if err := s.deleteAnyVersion(t.Context(), domain); err != nil {
				t.Error(err)
			}
		}

		if users := must(s.ListUsers(t.Context(), "demo"))(t); len(users) != 3 {
			t.Errorf("%d users are left", len(users))
		}
	})
}
