package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	s3credentials "github.com/minio/minio-go/v7/pkg/credentials"

	"trunkline/internal/freeport"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// awaitUnready waits until the probes of a waiting node report it as not ready.
func (n *node) awaitUnready(t *testing.T, why string) {
	t.Helper()
	eventually(t, "readiness to say "+why, func() error {
		live, _, err := n.probe("/livez")
		if err != nil || live != http.StatusOK {
			return fmt.Errorf("/livez: %d %v", live, err)
		}

		if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusServiceUnavailable ||
			text != why {
			return fmt.Errorf("/readyz: %d %s %v", status, text, err)
		}

		return n.checkMetric("trunkline_ready", "0")
	})
}

// checkMetric reports whether a series of the node has a value.
func (n *node) checkMetric(series, value string) error {
	_, text, err := n.probe("/metrics")
	if err != nil {
		return err
	}

	for line := range strings.Lines(text) {
		if got, ok := strings.CutPrefix(line, series+" "); ok {
			if strings.TrimSpace(got) != value {
				return fmt.Errorf("%s is %s, not %s", series, strings.TrimSpace(got), value)
			}
			return nil
		}
	}

	return fmt.Errorf("there is no %s", series)
}

// mustStopWhileWaiting stops a node that is not ready: it must end soon, with code 0 and without an
// error message.
func (n *node) mustStopWhileWaiting(t *testing.T) {
	t.Helper()
	began := time.Now()
	n.signal(t, syscall.SIGTERM)
	code, ok := n.exit(patience)
	if !ok || code != 0 || strings.Contains(readFile(t, n.log), "level=ERROR") {
		t.Errorf("%s: exit %d, %v after %v:\n%s", n.name, code, ok, time.Since(began), readFile(t, n.log))
	}
}

// countMessages returns how often a node has logged a row's message.
func (n *node) countMessages(t *testing.T, r *row) int { return r.countMatches(readFile(t, n.log)) }

func testKafkaAwayAtStart(t *testing.T, p *messageTable) {
	r := p.row(t, "waiting for kafka: check")
	n := newNode(t, "without kafka", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_BROKERS": freeport.Address(t),
	})
	n.startProcess(t)
	n.awaitMessage(t, r)
	n.awaitUnready(t, "waiting for kafka")

	if err := n.checkMetric(`trunkline_dependency_up{dependency="kafka"}`, "0"); err != nil {
		eventually(t, "the watch",
			func() error { return n.checkMetric(`trunkline_dependency_up{dependency="kafka"}`, "0") })
	}

	n.mustStopWhileWaiting(t)
	if count := n.countMessages(t, r); count != 1 {
		t.Errorf("logged %d times", count)
	}
}

// testKafkaGoesAway stops the Kafka of a node, the embedded one of another node.
func testKafkaGoesAway(t *testing.T, p *messageTable) {
	broker := freeport.Address(t)
	has := newNode(t, "has the broker",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN": broker})
	has.start(t)
	n := newNode(t, "uses it", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_BROKERS": broker,
		"TRUNKLINE_INGEST_PRODUCE_TIMEOUT": "2s",
	})
	c := newCluster(t, []string{broker}, "", n)
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice"))})
	has.kill(t)
	n.awaitMessage(t, p.row(t, "kafka does not answer"))

	if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz with Kafka away: %d %s %v", status, text, err)
	}
	if a := n.post(t, c.key, "svc.cc", typeJSON, record("demo", 1)); a.status != http.StatusServiceUnavailable ||
		a.header.Get("Retry-After") == "" {
		t.Errorf("a body: %s", a)
	}

	has.start(t)
	eventually(t, "a body to be taken", func() error {
		if a := n.post(t, c.key, "svc.cc", typeJSON, record("demo", 2)); a.status != http.StatusAccepted {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	s.await(t, "the event", func(got []event) bool { return len(got) > 0 && number(t, got[len(got)-1]) == 2 })
}

func testRedisAwayAtStart(t *testing.T, p *messageTable) {
	r := p.row(t, "redis does not answer: check")
	redis := testservice.OwnRedis(t)
	redis.Kill(t)
	n := newNode(t, "without redis",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_REDIS_ADDRESS": redis.Addr})
	n.start(t)
	n.awaitMessage(t, r)
	n.login(t, apiPaths, user("alice"))
	n.awaitHealth(t, "degraded", 0, patience)

	if err := n.checkMetric(`trunkline_dependency_up{dependency="redis"}`, "0"); err != nil {
		t.Error(err)
	}

	redis.Start(t)
	n.awaitHealth(t, "ok", 0, patience)
	eventually(t, "the watch",
		func() error { return n.checkMetric(`trunkline_dependency_up{dependency="redis"}`, "1") })
	text := readFile(t, n.log)
	if count := r.countMatches(text); count != 1 {
		t.Errorf("logged %d times", count)
	}

	// Further messages must not be logged at every attempt.
	if lines := strings.Count(text, "connection refused"); lines > 20 || strings.Contains(text, "pool.go") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

// testNoBucketOfRecordings starts with a store of recordings whose bucket is created later.
func testNoBucketOfRecordings(t *testing.T, p *messageTable) {
	r := p.row(t, "recordings does not answer")
	store, err := url.Parse(testservice.S3(t))
	if err != nil {
		t.Fatal(err)
	}

	secret, _ := store.User.Password()
	store.Path = "/" + strings.TrimSuffix(testservice.Prefix(t), "-")
	n := newNode(t, "without a bucket",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_RECORDINGS_URL": store.String()})
	n.start(t)
	n.awaitMessage(t, r)
	const up = `trunkline_dependency_up{dependency="recordings"}`
	if err := n.checkMetric(up, "0"); err != nil {
		t.Error(err)
	}
	if log := readFile(t, n.log); !strings.Contains(log, "the store has no bucket") {
		t.Errorf("the log does not say what is missing:\n%s", log)
	}

	client, err := minio.New(store.Host, &minio.Options{
		Creds:  s3credentials.NewStaticV4(store.User.Username(), secret, ""),
		Secure: store.Query().Get("tls") != "false",
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := client.MakeBucket(t.Context(), store.Path[1:], minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the bucket to be found", func() error { return n.checkMetric(up, "1") })
}

// TestDatabaseAway starts without PostgreSQL, starts it, stops it, and makes it refuse writes.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	p := readMessageTable(t)
	waiting, gone := p.row(t, "waiting for the database: ch"), p.row(t, "database does not answer")
	postgres := testservice.OwnPostgres(t)
	settings := map[string]string{"TRUNKLINE_DATABASE_URL": postgres.URL, "TRUNKLINE_DIRECTORY_FILE": directoryFile(t),
		"TRUNKLINE_MASTER_KEY": masterKey}
	postgres.Kill(t)

	given := newNode(t, "told to end", settings)
	given.startProcess(t)
	given.awaitMessage(t, waiting)
	given.awaitUnready(t, "waiting for the database")
	given.mustStopWhileWaiting(t)

	if count := given.countMessages(t, waiting); count != 1 {
		t.Errorf("logged %d times", count)
	}

	n := newNode(t, "waits", settings)
	n.startProcess(t)
	n.awaitMessage(t, waiting)
	postgres.Start(t)
	n.awaitReady(t)
	n.login(t, apiPaths, user("alice"))

	if err := n.checkMetric("trunkline_ready", "1"); err != nil {
		t.Error(err)
	}

	postgres.Kill(t)
	n.awaitMessage(t, gone)
	if err := n.checkMetric(`trunkline_dependency_up{dependency="database"}`, "0"); err != nil {
		t.Error(err)
	}
	if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz with the database away: %d %s %v", status, text, err)
	}
	if a := n.portalTry(t); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("a login without the database: %s", a)
	}

	postgres.Start(t)
	eventually(t, "logins", func() error {
		if a := n.portalTry(t); a.status != http.StatusOK {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	// A full disk: PostgreSQL answers and refuses each write with 53100.
	db := openDatabase(t, sqldb.Config{URL: postgres.URL})
	for _, statement := range []string{
		`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`,
		`CREATE TRIGGER full_disk BEFORE INSERT ON identity_refresh_tokens EXECUTE FUNCTION full_disk()`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	if a := n.portalTry(t); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("a login with the database's disk full: %s", a)
	}
	if _, err := db.ExecContext(t.Context(), `DROP TRIGGER full_disk ON identity_refresh_tokens`); err != nil {
		t.Fatal(err)
	}
	if a := n.portalTry(t); a.status != http.StatusOK {
		t.Errorf("a login when there is room again: %s", a)
	}
}

// portalTry logs in to the portal, which stores a session.
func (n *node) portalTry(t *testing.T) answer {
	t.Helper()
	return n.mustCall(t, http.MethodPost, "/ucp/v2/login", map[string]string{"Content-Type": typeJSON},
		`{"username":"alice","password":"`+password+`","domain":"demo.local"}`)
}
