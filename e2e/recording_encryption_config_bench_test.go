package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	benchload "trunkline/cmd/trunkline-bench/load"
	"trunkline/internal/testservice"
)

// BenchmarkRecordingEncryption reads and changes encryption configurations over TLS, for 100
// accounts with three versions each: as fast as 32 connections allow, and at half of the goals
// (5,000 reads and 500 changes a second), with latencies from the due times. Clients, server and
// PostgreSQL, which syncs every commit, share the machine.
func BenchmarkRecordingEncryption(b *testing.B) {
	n := newNode(b, "configs", map[string]string{
		"TRUNKLINE_ROLES": "api", "TRUNKLINE_LOG_LEVEL": "warn", "TRUNKLINE_DIRECTORY_FILE": manyAccounts(b),
		"TRUNKLINE_DATABASE_URL":                  testservice.DurablePostgres(b).URL,
		"TRUNKLINE_AUDIT_USER_ENTRIES_PER_MINUTE": "1000000",
		"TRUNKLINE_MASTER_KEY":                    "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
	})
	n.start(b)
	l := newConfigLoad(b, n)

	for range 3 {
		for i := range benchAccounts {
			if err := l.rotate(int64(i)); err != nil {
				b.Fatal(err)
			}
		}
	}

	b.Run("get", func(b *testing.B) { l.runUnpaced(b, l.get) })
	b.Run("get at 2500 a second", func(b *testing.B) { l.runPaced(b, 2500, l.get) })
	b.Run("put", func(b *testing.B) { l.runUnpaced(b, l.put) })
	b.Run("put at 250 a second", func(b *testing.B) { l.runPaced(b, 250, l.put) })
	b.Run("rotate", func(b *testing.B) { l.runUnpaced(b, l.rotate) }) // last: histories grow
}

const (
	benchAccounts    = 100
	benchConnections = 32
)

// manyAccounts is a directory with the benchmark's accounts.
func manyAccounts(b *testing.B) string {
	b.Helper()
	var text strings.Builder
	text.WriteString("accounts:\n  - {id: demo, name: Demo, domain: demo.local}\n")

	for i := range benchAccounts {
		fmt.Fprintf(&text, "  - {id: a%d, name: A%[1]d, domain: a%[1]d.test, parent: demo}\n", i)
	}

	fmt.Fprintf(&text, "users:\n  - {account: demo, username: admin, password: %s, role: admin}\n", password)
	file := filepath.Join(b.TempDir(), "directory.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}

	return file
}

// configLoad requests configurations from a node over persistent connections.
type configLoad struct {
	node    *node
	token   string
	clients chan *thinClient // idle
	serial  atomic.Int64     // makes every key different
}

func newConfigLoad(b *testing.B, n *node) *configLoad {
	b.Helper()
	c := &cluster{nodes: []*node{n}, ingestNode: n}
	l := &configLoad{node: n, token: c.portalLogin(b, user("admin")).AccessToken,
		clients: make(chan *thinClient, benchConnections)}

	for range benchConnections {
		client, err := dialThin(n)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = client.conn.Close() }) // the server may have closed it
		l.clients <- client
	}

	return l
}

func (l *configLoad) get(i int64) error { return l.request(http.MethodGet, i, "") }

// put changes only the last author.
func (l *configLoad) put(i int64) error { return l.request(http.MethodPut, i, `{"enabled":true}`) }

// rotate creates the account's next version.
func (l *configLoad) rotate(i int64) error {
	return l.request(http.MethodPut, i,
		fmt.Sprintf(`{"enabled":true,"key":"key number %d of a benchmark, long enough"}`, l.serial.Add(1)))
}

func (l *configLoad) request(method string, i int64, body string) error {
	client := <-l.clients
	defer func() { l.clients <- client }()
	return client.ask(method+" /api/v2/config/call_recording_encryption HTTP/1.1\r\nAuthorization: Bearer "+l.token+
		"\r\nX-Account-ID: a"+strconv.FormatInt(i%benchAccounts, 10)+"\r\n", body)
}

func (l *configLoad) runUnpaced(b *testing.B, work func(int64) error) {
	defer l.usage(b)()

	var next atomic.Int64
	var wg sync.WaitGroup
	for range benchConnections {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := work(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}

	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// usage reports the CPU time per request of client and server, in microseconds.
func (l *configLoad) usage(b *testing.B) (report func()) {
	b.Helper()
	now := func() (client, server time.Duration) {
		own, err1 := benchload.OwnUsage()
		serverUsage, err2 := benchload.ProcessUsage(l.node.child.process.Pid)
		if err := errors.Join(err1, err2); err != nil {
			b.Fatal(err)
		}
		return own.CPU, serverUsage.CPU
	}

	client, server := now()
	return func() {
		c, s := now()
		b.ReportMetric(float64((c-client).Microseconds())/float64(b.N), "client-µs")
		b.ReportMetric(float64((s-server).Microseconds())/float64(b.N), "server-µs")
	}
}

func (l *configLoad) runPaced(b *testing.B, perSecond int, work func(int64) error) {
	took := make([]time.Duration, b.N)
	began, pace := time.Now(), time.Second/time.Duration(perSecond)
	var next atomic.Int64
	var wg sync.WaitGroup

	for range benchConnections {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				due := began.Add(time.Duration(i) * pace)
				time.Sleep(time.Until(due))
				if err := work(i); err != nil {
					b.Error(err)
					return
				}

				took[i] = time.Since(due)
			}
		})
	}

	wg.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(took[b.N/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
}
