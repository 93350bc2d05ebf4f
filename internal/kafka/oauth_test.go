package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/kafka/credentials"
	"trunkline/internal/testservice"
	"trunkline/internal/tlsclient"
)

// tokenBroker is a broker that takes OAUTHBEARER as accept says, which returns
// the life of the session in milliseconds, or the document of a refusal. It
// returns the settings that reach it over TLS.
func tokenBroker(t *testing.T, accept func(message string) (life int64, refusal string)) Settings {
	t.Helper()
	ca := testservice.NewCA(t)
	pair, err := tls.LoadX509KeyPair(ca.Pair(t, "broker"))
	if err != nil {
		t.Fatal(err)
	}

	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	fake.ControlKey(int16(kmsg.SASLHandshake), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		answer := request.ResponseKind().(*kmsg.SASLHandshakeResponse)
		if request.(*kmsg.SASLHandshakeRequest).Mechanism != "OAUTHBEARER" {
			answer.ErrorCode = int16(kafkago.UnsupportedSASLMechanism)
		}
		return answer, nil, true
	})

	fake.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		answer := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		life, refusal := accept(string(request.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes))
		answer.SessionLifetimeMillis, answer.SASLAuthBytes = life, []byte(refusal)
		return answer, nil, true
	})

	settings := DefaultSettings(fake.ListenAddrs()...)
	settings.TLS = tlsclient.Settings{Enabled: true, CAFile: ca.File}
	return settings
}

func openCluster(t *testing.T, settings Settings) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheTokenFileAndExtensionsAreSent(t *testing.T) {
	var sent sync.Map
	settings := tokenBroker(t, func(message string) (int64, string) {
		sent.Store(message, true)
		return 0, ""
	})

	settings.SASL = credentials.Settings{Mechanism: "oauthbearer", OAuth: credentials.OAuth{
		TokenFile: tokenFile(t, "first"), Extensions: []string{"logicalCluster=lkc-1", "identityPoolId=pool 2"},
	}}

	if err := openCluster(t, settings).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := sent.Load("n,,\x01auth=Bearer first\x01logicalCluster=lkc-1\x01identityPoolId=pool 2\x01\x01"); !ok {
		sent.Range(func(message, _ any) bool { t.Errorf("sent %q", message); return true })
	}
}

func TestARefusedTokenIsAnAuthenticationError(t *testing.T) {
	settings := tokenBroker(t, func(string) (int64, string) { return 0, `{"status":"invalid_token","scope":"kafka"}` })
	settings.SASL = credentials.Settings{Mechanism: "oauthbearer",
		OAuth: credentials.OAuth{TokenFile: tokenFile(t, "hush")}}
	err := openCluster(t, settings).Ping(t.Context())
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Fatalf("got %v", err)
	}

	connections, err := newConnector(t.Context(), &Config{Settings: settings}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	_, err = connections.dial(t.Context(), "tcp", settings.Brokers[0])
	if !errors.Is(err, kafkago.SASLAuthenticationFailed) || !strings.Contains(err.Error(), "invalid_token") {
		t.Errorf("got %v", err)
	}
}

func TestATokenFileWithoutATokenIsRefusedAtStart(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "two lines": "a\nb", "an injected extension": "a\x01b=c"} {
		settings := DefaultSettings("127.0.0.1:1")
		settings.SASL = credentials.Settings{Mechanism: "oauthbearer",
			OAuth: credentials.OAuth{TokenFile: tokenFile(t, text)}}
		if _, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// tokenEndpoint answers with the tokens that next returns, and counts.
func tokenEndpoint(t *testing.T, life time.Duration, next func() string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		id, secret, _ := r.BasicAuth()
		if id != "wallboard" || secret != "s3cret" || r.FormValue("grant_type") != "client_credentials" ||
			r.FormValue("scope") != "kafka.read kafka.write" || r.FormValue("audience") != "kafka" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"s3cret"}`)
			return
		}

		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, next(), int(life.Seconds()))
	}))

	t.Cleanup(server.Close)
	return server
}

func atEndpoint(server *httptest.Server) credentials.OAuth {
	return credentials.OAuth{TokenURL: server.URL, ClientID: "wallboard", ClientSecret: "s3cret",
		Scopes: []string{"kafka.read", "kafka.write"}, Parameters: []string{"audience=kafka"}}
}

// A connection authenticates again, with a new token, before its session ends.
func TestAConnectionGetsANewTokenBeforeItsSessionEnds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	issued, logins := 0, map[string]int{}
	server := tokenEndpoint(t, 2*time.Second, func() string {
		mu.Lock()
		defer mu.Unlock()
		issued++
		return "token" + strconv.Itoa(issued)
	})

	settings := tokenBroker(t, func(message string) (int64, string) {
		mu.Lock()
		defer mu.Unlock()
		logins[message]++
		return 2000, ""
	})

	settings.SASL = credentials.Settings{Mechanism: "oauthbearer", OAuth: atEndpoint(server)}
	cfg := Config{Settings: settings}
	connections, err := newConnector(t.Context(), &cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	conn, err := connections.dial(t.Context(), "tcp", settings.Brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	several := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(logins) >= 3
	}

	for !several() {
		if _, err := conn.Write(setFrameSize(appendRequestHeader(nil, 18, 0))); err != nil { // ApiVersions
			t.Fatal(err)
		}

		var head [8]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(head[2])<<8+int64(head[3])-4); err != nil {
			t.Fatal(err)
		}

		time.Sleep(20 * time.Millisecond)
	}
}

// askToken logs in once with a token of the endpoint.
func askToken(t *testing.T, o credentials.OAuth) error {
	t.Helper()
	login, err := credentials.New(t.Context(), credentials.Settings{Mechanism: "oauthbearer", OAuth: o},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, err = login(t.Context())
	return err
}

func TestTheTokenEndpointsRefusalHasNoSecret(t *testing.T) {
	server := tokenEndpoint(t, time.Minute, func() string { return "x" })
	o := atEndpoint(server)
	o.Parameters = nil
	err := askToken(t, o)
	if err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), "invalid_client") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestTheTokenEndpointIsNotFollowedElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if err := askToken(t, atEndpoint(server)); err == nil {
		t.Error("a redirect is no token")
	}
}
