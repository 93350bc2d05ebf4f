package identity

import (
	"reflect"
	"slices"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestUsersOfAnAccount(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.local"}))(t)
		_, err := s.CreateUser(t.Context(), NewUser{Account: "demo", Username: "ALICE", Password: password})
		wantKind(t, "the name in another case", err, fault.KindConflict)
		_, err = s.CreateUser(t.Context(),
			NewUser{Account: "demo", Username: "carol", Password: password, PresenceID: "1001"})
		wantKind(t, "the extension", err, fault.KindConflict)
		_, err = s.CreateUser(t.Context(), NewUser{Account: "nowhere", Username: "carol", Password: password})
		wantKind(t, "no account", err, fault.KindNotFound)
		_, err = s.CreateUser(t.Context(), NewUser{Account: "\x00", Username: "carol", Password: password})
		wantKind(t, "a zero byte", err, fault.KindNotFound)
		twin := must(s.CreateUser(t.Context(),
			NewUser{Account: "other.local", Username: "Alice", Password: password, PresenceID: "1001"}))(t)
		if twin.AccountID != "other" || twin.Role != RoleUser {
			t.Errorf("twin %+v", twin)
		}

		must(s.CreateUser(t.Context(), NewUser{Account: "other", Username: "b", Password: password}))(t)
		must(s.CreateUser(t.Context(),
			NewUser{Account: "other", Username: "c", Password: password, Role: RoleAdmin}))(t)
		var names []string

		for _, u := range must(s.ListUsers(t.Context(), "other"))(t) {
			names = append(names, u.Username)
		}

		if !slices.Equal(names, []string{"Alice", "b", "c"}) {
			t.Errorf("users %v", names)
		}
		if err := s.SetClickToCallID(t.Context(), twin.ID, "c2c-1"); err != nil {
			t.Error(err)
		}

		twin.ClickToCallID = "c2c-1"
		if got := must(s.FindUser(t.Context(), twin.ID))(t); !reflect.DeepEqual(got, twin) {
			t.Errorf("got %+v, want %+v", got, twin)
		}
		if err := s.DeleteUser(t.Context(), "other", "aLICE"); err != nil {
			t.Error(err)
		}

		_, err = s.FindUser(t.Context(), twin.ID)
		wantKind(t, "User", err, fault.KindNotFound)
		wantKind(t, "SetClickToCallID", s.SetClickToCallID(t.Context(), twin.ID, "x"), fault.KindNotFound)
		wantKind(t, "DeleteUser", s.DeleteUser(t.Context(), "other", "alice"), fault.KindNotFound)
		_, err = s.ListUsers(t.Context(), "nowhere")
		wantKind(t, "Users", err, fault.KindNotFound)
	})
}

func TestUpdatingAUser(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		session := s.mustLogin(t, "alice")
		alice := s.mustAuthenticate(t, session.AccessToken)
		user := must(s.FindUser(t.Context(), alice.UserID))(t)

		if _, _, err := s.CreateDevice(t.Context(), "demo", "alice", ""); err != nil {
			t.Fatal(err)
		}

		devices := func() int { return len(must(s.ListDevices(t.Context(), "demo", "alice"))(t)) }
		next := nextPassword
		for name, u := range map[string]UserUpdate{
			"a taken extension":     {Role: RoleUser, PresenceID: "1002"},
			"a role that is not":    {Role: "root"},
			"a bad extension":       {Role: RoleUser, PresenceID: "1 1"},
			"another state":         {Role: RoleUser, IfMatch: `"x"`},
			"a taken one, password": {Role: RoleAdmin, PresenceID: "1002", Password: &next},
		} {
			if _, err := s.UpdateUser(t.Context(), user.ID, u); err == nil {
				t.Errorf("%s: no error", name)
			}
		}

		if got := must(s.FindUser(t.Context(), user.ID))(t); !reflect.DeepEqual(got, user) || devices() != 1 {
			t.Errorf("a refused update left %+v, %d devices", got, devices())
		}

		_, err := s.UpdateUser(t.Context(), "nobody", UserUpdate{Role: RoleUser})
		wantKind(t, "no user", err, fault.KindNotFound)

		stored := must(s.UpdateUser(t.Context(), user.ID,
			UserUpdate{Role: RoleUser, PresenceID: "1001", IfMatch: user.ETag()}))(t)
		if !reflect.DeepEqual(stored, user) || devices() != 1 {
			t.Errorf("an update to the same: %+v", stored)
		}
		if err := s.CheckPrincipal(alice); err != nil {
			t.Error(err)
		}

		stored = must(s.UpdateUser(t.Context(), user.ID, UserUpdate{Role: RoleAdmin, PresenceID: "2001"}))(t)
		if got := must(s.FindUser(t.Context(), user.ID))(t); !reflect.DeepEqual(got, stored) || got.Role != RoleAdmin ||
			got.PresenceID != "2001" || got.ETag() == user.ETag() || devices() != 0 {
			t.Errorf("%+v, %d devices", got, devices())
		}

		wantKind(t, "a token with the earlier role", s.CheckPrincipal(alice), fault.KindForbidden)
		refreshed := must(s.Refresh(t.Context(), session.RefreshToken))(t)
		if p := s.mustAuthenticate(t, refreshed.AccessToken); p.Role != RoleAdmin {
			t.Errorf("role %s", p.Role)
		}

		stored = must(s.UpdateUser(t.Context(), user.ID, UserUpdate{Role: RoleAdmin, Password: &next}))(t)
		if got := must(s.FindUser(t.Context(), user.ID))(t); !reflect.DeepEqual(got, stored) || got.PresenceID != "" {
			t.Errorf("%+v, stored %+v", got, stored)
		}

		_, err = s.Refresh(t.Context(), refreshed.RefreshToken)
		wantKind(t, "a session before the password", err, fault.KindUnauthenticated)
		must(s.Login(t.Context(), LoginRequest{Username: "alice", Password: next, Domain: "demo.local"}))(t)
	})
}
