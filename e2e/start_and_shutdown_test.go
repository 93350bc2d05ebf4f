package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestShutdownEmbedded(t *testing.T) {
	t.Parallel()
	const drainTimeout = 20 * time.Second
	n := newNode(t, "embedded", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_FANOUT_DRAIN_SPREAD": "1s",
		"TRUNKLINE_DRAIN_TIMEOUT": drainTimeout.String(),
	})
	c := newCluster(t, nil, "", n)
	token := n.login(t, apiPaths, user("alice"))
	load := startPosters(t, &poster{name: "p", account: "demo", key: c.key, node: n, every: 10 * time.Millisecond})
	var open []*subscriber

	for range 4 {
		open = append(open, n.subscribe(t, subscription{paths: apiPaths, token: token}))
	}

	bySSE := keepSubscribed(t,
		subscription{paths: wsPaths, token: token, sse: true, sinceInHeader: true, since: "earliest"}, n)
	load.awaitMore(t, 20)

	began := time.Now()
	n.signal(t, syscall.SIGTERM)

	// Sockets are closed over the course of a second: when the first one is closed, readiness
	// already fails and new ones are refused.
	firstToGo := make(chan *subscriber, len(open))
	for _, s := range open {
		go func() { <-s.done; firstToGo <- s }()
	}

	select {
	case <-firstToGo:
	case <-time.After(patience):
		t.Fatal("no socket was closed")
	}

	if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusServiceUnavailable ||
		text != "draining" {
		t.Errorf("/readyz while sockets are sent away: %d %s %v", status, text, err)
	}
	if status, _, err := n.probe("/livez"); err != nil || status != http.StatusOK {
		t.Errorf("/livez while sockets are sent away: %d %v", status, err)
	}

	for i, s := range open {
		code, reason := s.awaitEnd(t)
		got := s.events()
		if code != websocket.CloseServiceRestart || len(got) == 0 || !strings.Contains(reason, got[len(got)-1].ID) {
			t.Errorf("socket %d is closed with %d %q after %d events", i, code, reason, len(got))
		}
	}

	code, ok := n.awaitExit(drainTimeout + patience)
	if !ok || code != 0 {
		t.Fatalf("exit %d, %v, after %v", code, ok, time.Since(began))
	}

	t.Logf("drained in %v", time.Since(began).Round(time.Millisecond))

	n.start(t)
	load.awaitMore(t, 20)
	load.stop()
	checkOrder(t, "a stream through a shutdown", load.awaitAll(t, bySSE, ""))

	// Subscribers that were asked to reconnect miss no event either.
	back := n.subscribe(t, subscription{paths: wsPaths, token: token, since: open[0].position()})
	whole := append(open[0].events(),
		back.awaitCount(t, len(bySSE.events())-len(open[0].events())-missedBefore(bySSE, open[0]))...)
	checkOrder(t, "a socket that came back", whole)
}

// missedBefore returns the number of events before the first one of s, from a subscriber that has
// all.
func missedBefore(all, s *subscriber) int {
	first := s.events()[0].ID
	for i, e := range all.events() {
		if e.ID == first {
			return i
		}
	}
	return 0
}

// TestShutdownReal stops one of two nodes: its subscribers continue on the other.
func TestShutdownReal(t *testing.T) {
	t.Parallel()
	c := allRolesCluster(t)
	stopped, stays := c.nodes[0], c.nodes[1]
	token := stays.login(t, apiPaths, user("alice"))
	load := startPosters(t, &poster{name: "p", account: "demo", key: c.key, node: stays, every: 10 * time.Millisecond})
	s := keepSubscribed(t, subscription{paths: apiPaths, token: token, cursor: true, since: "earliest"}, stopped, stays)
	load.awaitMore(t, 50)
	stopped.signal(t, syscall.SIGTERM)

	if code, ok := stopped.awaitExit(patience); !ok || code != 0 {
		t.Errorf("exit %d, %v", code, ok)
	}

	leftAt := time.Now()
	stays.awaitHealth(t, "ok", 1, patience)
	load.awaitMore(t, 50)
	s.awaitCount(t, len(s.events())+1)
	t.Logf("events flow %v after a node has left", time.Since(leftAt).Round(time.Millisecond))
	load.stop()
	kept, _ := dropRepeats(load.awaitAll(t, s, ""))
	checkOrder(t, "who went on at the other node", kept)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, "slow to drain", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_FANOUT_DRAIN_SPREAD": "5m", "TRUNKLINE_DRAIN_TIMEOUT": "10m",
	})
	n.start(t)
	token := n.login(t, apiPaths, user("alice"))

	for range 3 {
		n.subscribe(t, subscription{paths: apiPaths, token: token})
	}

	n.signal(t, syscall.SIGINT)
	eventually(t, "readiness to fail", func() error {
		if status, _, err := n.probe("/readyz"); err != nil || status != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %v", status, err)
		}
		return nil
	})

	n.mustRefuse(t, subscription{paths: apiPaths, token: token}, http.StatusServiceUnavailable)
	n.signal(t, syscall.SIGTERM)
	if code, ok := n.awaitExit(patience); !ok || code != 1 {
		t.Errorf("exit %d, %v after the second signal", code, ok)
	}
}

// TestRefusesToStart checks the message for each error and the exit code.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, "first", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	notDir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name     string
		settings []string // in addition to those of its node
		code     int
		says     []string // parts of lines printed by the program
	}{
		{"a port that is taken", []string{"TRUNKLINE_LISTEN", taken.Addr().String()}, 1,
			[]string{"listen", taken.Addr().String(), "in use"}},
		{"a metrics port that is taken", []string{"TRUNKLINE_METRICS_LISTEN", taken.Addr().String()}, 1,
			[]string{"metrics_listen", "in use"}},
		{"another's data directory", []string{"TRUNKLINE_DATA_DIR", n.dir}, 1,
			[]string{"another trunkline uses this data directory", n.dir}},
		{"a data directory that is a file", []string{"TRUNKLINE_DATA_DIR", notDir}, 2, []string{"data_dir", notDir}},
		{"no number", []string{"TRUNKLINE_KAFKA_PARTITIONS", "many"}, 2,
			[]string{"TRUNKLINE_KAFKA_PARTITIONS", "kafka.partitions"}},
		{"no role", []string{"TRUNKLINE_ROLES", "cook"}, 2, []string{"roles", "cook"}},
		{"no certificate", []string{"TRUNKLINE_TLS_CERT_FILE", "none.pem", "TRUNKLINE_TLS_KEY_FILE", "none.pem"}, 2,
			[]string{"tls.cert_file", "none.pem"}},
		{"no directory file", []string{"TRUNKLINE_DIRECTORY_FILE", "none.yaml"}, 2,
			[]string{"directory_file", "none.yaml"}},
		{"no master key file", []string{"TRUNKLINE_MASTER_KEY_FILE", "none.key"}, 2,
			[]string{"master_key_file", "none.key"}},
		{"a SIP port that is taken", []string{"TRUNKLINE_SIP_LISTEN", taken.Addr().String()}, 1,
			[]string{"sip.listen", "in use"}},
		{"phones without SIP", []string{"TRUNKLINE_ORIGINATION_DRIVER", "sip", "TRUNKLINE_SIP_LISTEN", "off"}, 1,
			[]string{"origination.driver", "sip.listen"}},
		{"a switch without a password",
			[]string{"TRUNKLINE_ORIGINATION_DRIVER", "freeswitch", "TRUNKLINE_ORIGINATION_FREESWITCH_ADDRESS",
				"pbx:8021"}, 2, []string{"origination.freeswitch.password"}},
		{"a wrong address", []string{"TRUNKLINE_REDIS_ADDRESS", "nowhere"}, 2, []string{"redis.address"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := newNode(t, c.name, map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
			settings := withSettings(own.settings, append([]string{"TRUNKLINE_LOG_LEVEL", "error"}, c.settings...)...)
			done := run(t, settings, "", "serve")
			errLines := lines(done.stderr)
			withoutPrefix := slices.ContainsFunc(errLines,
				func(line string) bool { return !strings.HasPrefix(line, "trunkline: ") })
			if done.code != c.code || withoutPrefix || done.stdout != "" || len(errLines) != 1 {
				t.Errorf("exit code %d, want %d; stdout %q, stderr\n%s", done.code, c.code, done.stdout, done.stderr)
			}

			for _, word := range c.says {
				if !strings.Contains(done.stderr, word) {
					t.Errorf("%q is not in %q", word, done.stderr)
				}
			}
		})
	}

	t.Run("and the first one goes on", func(t *testing.T) {
		n.awaitHealth(t, "ok", 0, patience)
		if _, err := os.Stat(filepath.Join(n.dir, "trunkline.db")); errors.Is(err, os.ErrNotExist) {
			t.Error("its database is gone")
		}
	})
}

// Without its master key a node refuses to serve secrets sealed under it: here those of the
// demo's phones, which exist from the first start on.
func TestALostMasterKeyStopsTheStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, "lost", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	stop := func() {
		n.signal(t, syscall.SIGTERM)
		if code, ok := n.awaitExit(patience); !ok || code != 0 {
			t.Fatalf("stopped with %d, %v", code, ok)
		}
	}

	n.start(t)
	stop()
	key := filepath.Join(n.dir, "master.key")
	if err := os.Rename(key, key+".lost"); err != nil {
		t.Fatal(err)
	}

	done := run(t, withSettings(n.settings, "TRUNKLINE_LOG_LEVEL", "error"), "", "serve")
	if done.code != 2 || !strings.Contains(done.stderr, "identity: ") ||
		!strings.Contains(done.stderr, "TRUNKLINE_MASTER_KEY") {
		t.Errorf("exit code %d, stderr %s", done.code, done.stderr)
	}

	if _, err := os.Stat(key); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another key was made in its place: %v", err)
	}
	if err := os.Rename(key+".lost", key); err != nil {
		t.Fatal(err)
	}

	n.start(t)
	stop()
}

// A first start creates no users without the setting for them.
func TestNoDemoUsersWithoutDemoPassword(t *testing.T) {
	t.Parallel()
	n := newNode(t, "nobody", map[string]string{})
	n.start(t)

	if accounts := n.cli(t, "account", "list", "--json"); strings.TrimSpace(accounts) != "[]" {
		t.Errorf("the first start made %s", accounts)
	}

	n.cli(t, "account", "create", "Own", "--id", "own", "--domain", "own.test")
	if log := readFile(t, n.log); strings.Contains(log, "password") {
		t.Error("a password is in the log")
	}
}
