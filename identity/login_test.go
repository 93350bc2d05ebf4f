package identity

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestLoginAnswersAUserAndTokens(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		c := demoLogin("ALICE")
		c.Domain = "Demo.Local"
		session := must(s.Login(t.Context(), c))(t)
		u := session.User
		if u.AccountID != "demo" || u.Username != "alice" || u.PresenceID != "1001" || u.Role != RoleUser {
			t.Errorf("user %+v", u)
		}
		if session.ExpiresIn != time.Hour || session.RefreshToken == "" {
			t.Errorf("session lives %s", session.ExpiresIn)
		}

		p := s.mustAuthenticate(t, session.AccessToken)
		if p.UserID != u.ID || p.Username != "alice" || p.AccountID != "demo" || p.Role != RoleUser ||
			p.Audience != AudienceAPI || p.FamilyID == "" || p.TokenID == "" || p.IsKey() {
			t.Errorf("principal %+v", p)
		}
		if got := must(s.FindUser(t.Context(), p.UserID))(t); !reflect.DeepEqual(got, u) {
			t.Errorf("user %+v, want %+v", got, u)
		}
		if admin := s.mustLogin(t, "admin").User; admin.Role != RoleAdmin || admin.PresenceID != "" {
			t.Errorf("admin %+v", admin)
		}
	})
}

func TestWrongLoginsAnswerTheSame(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		for name, change := range map[string]func(*LoginRequest){
			"password":        func(c *LoginRequest) { c.Password = "Correct horse" },
			"long password":   func(c *LoginRequest) { c.Password = strings.Repeat("x", 1<<20) },
			"user":            func(c *LoginRequest) { c.Username = "mallory" },
			"domain":          func(c *LoginRequest) { c.Domain = "demo.example" },
			"id for a domain": func(c *LoginRequest) { c.Domain = "demo" },
			"zero byte":       func(c *LoginRequest) { c.Username = "alice\x00" },
			"bad UTF-8":       func(c *LoginRequest) { c.Domain = "demo.local\xff" },
			"SQL":             func(c *LoginRequest) { c.Username = "alice' OR '1'='1" },
			"SQL in domain":   func(c *LoginRequest) { c.Domain = "x' UNION SELECT * FROM identity_users --" },
		} {
			c := demoLogin("alice")
			change(&c)
			_, err := s.Login(t.Context(), c)
			if err != error(errWrongLogin) {
				t.Errorf("%s: %v", name, err)
			}

			if _, _, err := s.EventsLogin(t.Context(), c,
				Filter{AccountIDs: []string{"nowhere"}}); err != error(errWrongLogin) {
				t.Errorf("channel, %s: %v", name, err)
			}
		}
	})
}

// Without a domain a username is enough where only one user has it. The failures count as with
// the domain.
func TestALoginWithoutADomain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		c := demoLogin("Alice")
		c.Domain = ""

		if session, err := s.Login(t.Context(), c); err != nil || session.User.AccountID != "demo" {
			t.Errorf("got %+v, %v", session, err)
		}
		if _, _, err := s.EventsLogin(t.Context(), c, Filter{}); err != nil {
			t.Errorf("channel: %v", err)
		}

		s.insertAccounts(t, []Account{{ID: "other", Name: "other", Domain: "other.local"}})
		must(s.CreateUser(t.Context(),
			NewUser{Account: "other", Username: "alice", Password: c.Password, Role: RoleUser}))(t)

		for name, wrong := range map[string]LoginRequest{
			"two users have the name": c,
			"no user has it":          {Username: "mallory", Password: c.Password},
			"a zero byte":             {Username: "alice\x00", Password: c.Password},
		} {
			if _, err := s.Login(t.Context(), wrong); err != error(errWrongLogin) {
				t.Errorf("%s: %v", name, err)
			}
		}

		bob := LoginRequest{Username: "bob", Password: "wrong", Address: "203.0.113.7"}
		for range failuresPerUser {
			_, _ = s.Login(t.Context(), bob)
		}

		bob.Domain = "demo.local"
		if _, err := s.Login(t.Context(), bob); fault.KindOf(err) != fault.KindLimited {
			t.Errorf("after %d failures without the domain: %v", failuresPerUser, err)
		}
	})
}

func TestLoginNamesMissingFields(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	_, err := s.Login(t.Context(), LoginRequest{Username: "alice"})
	f := fault.As(err)
	if f.Kind != fault.KindInvalid || len(f.Fields) != 1 || f.Fields[0].Field != "password" ||
		f.Fields[0].Code != "required" {
		t.Errorf("got %+v", f)
	}
}

func TestTenthFailedLoginIsTheLastAndSuccessesDoNotCount(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	wrong := demoLogin("alice")
	wrong.Password = "guess"

	for range 3 * failuresPerUser {
		s.mustLogin(t, "alice")
	}

	for range failuresPerUser {
		_, err := s.Login(t.Context(), wrong)
		wantKind(t, "a guess", err, fault.KindUnauthenticated)
	}

	_, err := s.Login(t.Context(), wrong)
	wantKind(t, "one too many", err, fault.KindLimited)
	_, err = s.Login(t.Context(), demoLogin("ALICE"))
	f := fault.As(err)
	if f.Kind != fault.KindLimited || f.RetryAfter%time.Second != 0 || f.RetryAfter <= 4*time.Minute ||
		f.RetryAfter > 5*time.Minute {
		t.Errorf("the right password afterwards: %v, retry after %s", err, f.RetryAfter)
	}

	_, _, err = s.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
	wantKind(t, "the channel login", err, fault.KindLimited)
	s.mustLogin(t, "bob")
}

func TestHundredFailuresFromAnAddressBlockIt(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	for i := range failuresPerAddress {
		c := LoginRequest{Username: strings.Repeat("x", i+1), Password: "x", Domain: "x", Address: "2001:db8::1"}
		_, err := s.Login(t.Context(), c)
		wantKind(t, "a guess", err, fault.KindUnauthenticated)
	}

	c := demoLogin("alice")
	c.Address = "2001:db8::2"
	_, err := s.Login(t.Context(), c)
	wantKind(t, "the same /64", err, fault.KindLimited)
	c.Address = "2001:db8:0:1::1"
	_, err = s.Login(t.Context(), c)
	if err != nil {
		t.Errorf("another /64: %v", err)
	}

	for i := range failuresPerAddress { // each from a /64 of its own
		guess := LoginRequest{Username: strings.Repeat("y", i+1), Password: "x", Domain: "x",
			Address: fmt.Sprintf("2001:db8:0:%x::1", i%0x80+2)}
		if _, err := s.Login(t.Context(), guess); err == nil {
			t.Fatal("a guess succeeded")
		}
	}

	_, err = s.Login(t.Context(), c)
	wantKind(t, "another /64 of the same /56", err, fault.KindLimited)
	c.Address = "2001:db8:0:100::1"
	_, err = s.Login(t.Context(), c)
	if err != nil {
		t.Errorf("another /56: %v", err)
	}
}

func TestGuessesAtOnceGetNoMoreThanTheLimit(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	wrong := demoLogin("alice")
	wrong.Password = "guess"
	var mu sync.Mutex
	kinds := map[fault.Kind]int{}
	var group sync.WaitGroup

	for range 3 * failuresPerUser {
		group.Go(func() {
			_, err := s.Login(t.Context(), wrong)
			mu.Lock()
			defer mu.Unlock()
			kinds[fault.KindOf(err)]++
		})
	}

	group.Wait()
	if kinds[fault.KindUnauthenticated] != failuresPerUser || kinds[fault.KindLimited] != 2*failuresPerUser {
		t.Errorf("got %v", kinds)
	}
}

// countingLimiter counts the calls of Wait.
type countingLimiter struct {
	*MemoryLimiter
	waits chan struct{}
}

func (l *countingLimiter) Wait(ctx context.Context, limits ...Limit) time.Duration {
	wait := l.MemoryLimiter.Wait(ctx, limits...)
	l.waits <- struct{}{}
	return wait
}

func TestALoginThatQueuedWhileTheLimitWasUsedUpIsRefused(t *testing.T) {
	limiter := &countingLimiter{NewMemoryLimiter(), make(chan struct{}, 10)}
	s := startServiceOn(t, testdb.Open(t, testdb.SQLite(t)), Config{HashSlots: 1}, limiter).demo(t)
	done := must(s.Directory.passwords.slots.acquire(t.Context(), slotClient{known: true}))(t)

	answer := make(chan error)
	go func() {
		_, err := s.Login(t.Context(), demoLogin("alice"))
		answer <- err
	}()

	<-limiter.waits // it has passed the limiter and waits for a slot
	for range failuresPerUser {
		limiter.Fail(t.Context(), demoLogin("alice").attempt().allLimits()...)
	}

	done()
	wantKind(t, "the right password, too late", <-answer, fault.KindLimited)
}

// An unknown user costs as much as a known one: a hash with the same parameters and
// length. A comparison of times would depend on the machine.
func TestAnUnknownUserCostsAsMuchAsAKnownOne(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	cost := func(c LoginRequest) string {
		_, stored, err := s.findUserByLogin(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}

		cost, salt, sum, err := parseHash(stored)
		if err != nil {
			t.Fatal(err)
		}

		return fmt.Sprint(cost, len(salt), len(sum))
	}

	stranger, nowhere := demoLogin("nobody"), demoLogin("alice")
	nowhere.Domain = "nowhere.local"
	known := cost(demoLogin("alice"))

	for name, c := range map[string]LoginRequest{"user": stranger, "domain": nowhere} {
		if got := cost(c); got != known {
			t.Errorf("an unknown %s costs %s, a known one %s", name, got, known)
		}
	}
}

// onlyFailLimiter never limits in Wait, as if all attempts began at the same time.
type onlyFailLimiter struct{ *MemoryLimiter }

func (onlyFailLimiter) Wait(context.Context, ...Limit) time.Duration { return 0 }

func TestAFailureBeyondTheLimitAnswersLimited(t *testing.T) {
	s := startServiceOn(t, testdb.Open(t, testdb.SQLite(t)), Config{}, onlyFailLimiter{NewMemoryLimiter()}).demo(t)
	wrong := demoLogin("alice")
	wrong.Password = "guess"

	for i := range 2 * failuresPerUser {
		want := fault.KindUnauthenticated
		if i >= failuresPerUser {
			want = fault.KindLimited
		}
		_, err := s.Login(t.Context(), wrong)
		wantKind(t, "a guess", err, want)
	}
}

func TestALoginThatFindsNoHashSlotGivesUpWithItsContext(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{HashSlots: 1}).demo(t)
	done := must(s.Directory.passwords.slots.acquire(t.Context(), slotClient{known: true}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Login(ctx, demoLogin("alice"))
	wantKind(t, "no slot", err, fault.KindUnavailable)
	done()
	s.mustLogin(t, "alice")
}

func TestLoginWhileTheDatabaseIsAwayIsUnavailableAndNoFailure(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite(t))
	s := startServiceOn(t, db, Config{}, NewMemoryLimiter()).demo(t)
	token := s.mustLogin(t, "alice").AccessToken
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	for range 2 * failuresPerUser {
		_, err := s.Login(ended, demoLogin("alice"))
		wantKind(t, "login", err, fault.KindUnavailable)
	}

	if _, err := s.Authenticate(ended, token); err != nil {
		t.Errorf("memory alone does not do: %v", err)
	}

	s.mustLogin(t, "alice")
}
