package app

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/audit/audittest"
	"trunkline/identity"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
	"trunkline/settings"
	"trunkline/telephony/sip"
)

// challengeRealm returns the realm of the challenge that a stranger's request gets, by TCP.
func challengeRealm(t *testing.T, server *sip.Server, method, domain string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()

	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}

	aor := "<sip:1001@" + domain + ">"
	_, err = fmt.Fprintf(conn,
		"%[1]s sip:%[2]s SIP/2.0\r\nVia: SIP/2.0/TCP %[3]s;branch=z9hG4bK%[4]d\r\nFrom: %[5]s;tag=1\r\nTo: %[5]s\r\n"+
			"Call-ID: %[4]d\r\nCSeq: 1 %[1]s\r\nContact: <sip:1001@%[3]s;transport=tcp>\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n",
		method, domain, conn.LocalAddr(), time.Now().UnixNano(), aor)
	if err != nil {
		t.Fatal(err)
	}

	for in := bufio.NewScanner(conn); in.Scan(); {
		if _, value, isChallenge := strings.Cut(in.Text(), `-Authenticate: Digest realm="`); isChallenge {
			realm, _, _ := strings.Cut(value, `"`)
			return realm
		}
	}

	t.Fatalf("%s to %s got no challenge", method, domain)
	return ""
}

// newTestIdentity has an empty directory.
func newTestIdentity(t *testing.T, db *sqldb.DB) *identity.Service {
	t.Helper()
	ring, err := masterkey.Open(masterkey.Settings{Value: setting.Secret(strings.Repeat("0f1e2d3c", 8))})
	if err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.DiscardHandler)
	config := identity.Config{Settings: identity.DefaultSettings(),
		Argon2: identity.Argon2{MemoryKiB: 64, Passes: 1, Lanes: 1}}
	service, err := identity.New(t.Context(), config, db, ring, identity.NewMemoryLimiter(), audittest.New(t, db),
		prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}

	return service
}

// A stranger who names a domain that is no account's learns no tenant's domain from the challenge, and
// one who names a tenant's learns no other.
func TestTheRealmNamesNoOtherTenantsDomain(t *testing.T) {
	ctx := t.Context()
	service := newTestIdentity(t, testdb.Open(t, testdb.SQLite(t)))
	for _, name := range []string{"acme", "other"} {
		if _, err := service.Directory.CreateAccount(ctx,
			identity.NewAccount{ID: name, Name: name, Domain: name + ".example"}); err != nil {
			t.Fatal(err)
		}
	}

	log := slog.New(slog.DiscardHandler)
	client, closeRedis, err := backend.OpenRedis(settings.Default(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeRedis(); err != nil {
			t.Error(err)
		}
	}()

	bindings, err := sip.NewRedisBindings(client, "realm:")
	if err != nil {
		t.Fatal(err)
	}

	cfg := sip.Config{Settings: sip.DefaultSettings(), Limits: sip.Limits{MaxCalls: 10}}
	cfg.Listen = "127.0.0.1:0"
	server, err := sip.New(cfg, sipDirectory{directory: service.Directory, credentials: service.Credentials}, bindings,
		prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}

	running, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := server.Run(running); err != nil {
			t.Error(err)
		}
	})
	defer ended.Wait()
	defer stop()

	for _, method := range []string{"REGISTER", "INVITE"} {
		for _, named := range []string{"127.0.0.1", "localhost", "nobody.example", "x.acme.example", "acme",
			"acme.example", "other.example"} {
			if got := challengeRealm(t, server, method, named); got != named {
				t.Errorf("%s to %s: the realm is %q", method, named, got)
			}
		}
	}
}
