package identity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"trunkline/audit/audittest"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// fakeAccountData is an Eraser with a number of objects for each account.
type fakeAccountData struct {
	left map[string]int // objects, by account
	fail error          // after one part
}

func (f *fakeAccountData) deletePart(_ context.Context, id string) (int, error) {
	if f.left[id] == 0 {
		return 0, nil
	}
	if f.fail != nil && f.left[id] < 3 {
		return 0, f.fail
	}
	f.left[id]--
	return 1, nil
}

func TestADeletedAccountIsPurgedAfterAWhileAndItsIDIsNeverGivenAgain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		clock := newClock()
		s := startService(t, db, Config{Now: clock.now}).demo(t)
		session := s.mustLogin(t, "alice")
		must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other"}))(t)
		recordings, rows := &fakeAccountData{left: map[string]int{"demo": 3,
			"other": 2}}, &fakeAccountData{left: map[string]int{"demo": 2}}

		purge := NewPurge(s.Directory, AccountSettings{PurgeAfter: 30 * 24 * time.Hour},
			[]Eraser{{"recordings", recordings.deletePart}, {"rows", rows.deletePart}}, slog.New(slog.DiscardHandler))
		due := func() {
			t.Helper()
			if err := purge.RunDue(t.Context()); err != nil {
				t.Error(err)
			}
		}

		if err := s.deleteAnyVersion(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Authenticate(t.Context(), session.AccessToken); fault.KindOf(err) != fault.KindUnauthenticated {
			t.Errorf("its token is still good: %v", err)
		}

		_, err := s.CreateAccount(t.Context(), NewAccount{ID: "demo", Name: "new", Domain: "new"})
		wantKind(t, "its id again", err, fault.KindConflict)
		must(s.CreateAccount(t.Context(), NewAccount{Name: "demo", Domain: "demo.local"}))(t)

		if seeded, err := s.SeedDemo(t.Context(), password); seeded || err != nil {
			t.Errorf("seeded %v, %v", seeded, err)
		}

		clock.add(30*24*time.Hour - time.Second)
		due()
		if recordings.left["demo"] != 3 {
			t.Error("purged too early")
		}

		clock.add(time.Second)
		recordings.fail = errors.New("killed here")
		if err := purge.RunDue(t.Context()); !errors.Is(err, recordings.fail) {
			t.Errorf("broken off with %v", err)
		}

		recordings.fail = nil
		due() // another process may still be purging
		if recordings.left["demo"] != 2 {
			t.Error("the lease was not waited for")
		}

		clock.add(purgeLeaseTime)
		due()
		if recordings.left["demo"] != 0 || rows.left["demo"] != 0 || recordings.left["other"] != 2 {
			t.Errorf("left are %v and %v", recordings.left, rows.left)
		}

		want := []string{"account.delete  account:demo ok", "account.delete  account:demo purged"}
		if got := audittest.Entries(t, s.auditLog, "demo", "account.delete"); !slices.Equal(got, want) {
			t.Errorf("the audit log has %q, want %q", got, want)
		}

		rows.left["demo"] = 1 // a record that was still in Kafka
		due()
		clock.add(purgeAgainAfter)
		due()

		if rows.left["demo"] != 0 {
			t.Error("what came late is not purged")
		}
		if got := audittest.Entries(t, s.auditLog, "demo", "account.delete"); len(got) != 2 {
			t.Errorf("the audit log has %q", got)
		}

		_, err = s.CreateAccount(t.Context(), NewAccount{ID: "demo", Name: "new", Domain: "new"})
		wantKind(t, "its id after the purge", err, fault.KindConflict)
	})
}

// The longer ago an account was deleted, the less data of it can still arrive, so purges of it become rarer.
func TestAPurgeIsRepeatedMoreSeldomTheLongerAnAccountIsDeleted(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		clock := newClock()
		s := startService(t, db, Config{Now: clock.now}).demo(t)
		purges := 0
		counting := func(context.Context, string) (int, error) { purges++; return 0, nil }
		purge := NewPurge(s.Directory, AccountSettings{PurgeAfter: 30 * 24 * time.Hour},
			[]Eraser{{"rows", counting}}, slog.New(slog.DiscardHandler))
		if err := s.deleteAnyVersion(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}

		purgesOf := func(days int) int {
			purges = 0
			for range days {
				clock.add(24 * time.Hour)
				if err := purge.RunDue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return purges
		}

		purgesOf(30)
		if got := purgesOf(10); got != 10 {
			t.Errorf("%d purges in the first ten days, want one a day", got)
		}

		purgesOf(365)
		if got := purgesOf(365); got < 5 || got > 12 {
			t.Errorf("%d purges in the second year, want one in about 10 %% of the time that has passed", got)
		}
	})
}

func TestAPurgeNowContinuesAfterAKill(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{}).demo(t)
		recordings := &fakeAccountData{left: map[string]int{"demo": 5}, fail: errors.New("killed here")}
		purge := NewPurge(s.Directory, DefaultAccountSettings(), []Eraser{{"recordings", recordings.deletePart}},
			slog.New(slog.DiscardHandler))
		wantKind(t, "an account that exists", purge.RunNow(t.Context(), "demo"), fault.KindNotFound)

		if err := s.deleteAnyVersion(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if err := purge.RunNow(t.Context(), "demo"); !errors.Is(err, recordings.fail) || recordings.left["demo"] != 2 {
			t.Errorf("broken off with %v, left are %v", err, recordings.left)
		}

		recordings.fail = nil
		if err := purge.RunNow(t.Context(), "demo"); err != nil || recordings.left["demo"] != 0 {
			t.Errorf("continued with %v, left are %v", err, recordings.left)
		}
	})
}
