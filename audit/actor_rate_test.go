package audit

import (
	"testing"
	"time"

	"trunkline/internal/fault"
)

// The entries that a credential causes are bounded in each minute, for each credential by
// itself; commands and the server are not.
func TestActorsHaveARate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 15, 0, time.UTC)
	l := &Log{settings: Settings{UserEntriesPerMinute: 5, KeyEntriesPerMinute: 7}, now: func() time.Time { return now }}
	taken := func(actor string) (n int, err error) {
		for range 20 {
			err = l.limitActors([]Entry{{Actor: actor}}, false)
			if err != nil {
				return n, err
			}
			n++
		}

		return n, nil
	}

	for _, tc := range []struct {
		actor string
		want  int
	}{{"user:a", 5}, {"user:b", 5}, {"apikey:a", 7}, {"cli:root", 20}, {"", 20}, {"sip:1001", 20}, {"user:a", 0}} {
		n, err := taken(tc.actor)
		if n != tc.want || (n < 20) != (fault.KindOf(err) == fault.KindLimited) {
			t.Errorf("%q: %d entries, %v", tc.actor, n, err)
		}
		if n < 20 && fault.As(err).RetryAfter != 45*time.Second {
			t.Errorf("%q: wait %v", tc.actor, fault.As(err).RetryAfter)
		}
	}

	for range 20 { // by anybody who guesses
		_ = l.limitActors([]Entry{{Actor: "user:c", Action: LoginLocked}}, true)
	}

	left, _ := taken("user:c")
	if left != 5 {
		t.Errorf("refused logins used up the user's rate: %d entries", left)
	}

	for _, action := range []Action{Login, Logout, PasswordUpdate} {
		if err := l.limitActors([]Entry{{Actor: "user:a", Action: action}}, false); err != nil {
			t.Errorf("a thief who uses up the rate stops %s: %v", action, err)
		}
	}

	now = now.Add(45 * time.Second)
	n, _ := taken("user:a")
	if n != 5 {
		t.Errorf("in the next minute: %d entries", n)
	}
}
