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
	"trunkline/internal/testservice"
)

// mustStopWhileWaiting stops a node that is not ready: it must end soon, with code 0 and without an
// error message.
func (n *node) mustStopWhileWaiting(t *testing.T) {
	t.Helper()
	began := time.Now()
	n.signal(t, syscall.SIGTERM)
	code, ok := n.awaitExit(patience)
	if !ok || code != 0 || strings.Contains(readFile(t, n.log), "level=ERROR") {
		t.Errorf("%s: exit %d, %v after %v:\n%s", n.name, code, ok, time.Since(began), readFile(t, n.log))
	}
}

// countMessages returns how often a node has logged a row's message.
func (n *node) countMessages(t *testing.T, r *messageRow) int {
	return r.countMatches(readFile(t, n.log))
}

func testKafkaAwayAtStart(t *testing.T, messages *messageTable) {
	r := messages.row(t, "waiting for kafka: check")
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
func testKafkaGoesAway(t *testing.T, messages *messageTable) {
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
	n.awaitMessage(t, messages.row(t, "kafka does not answer"))

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

func testRedisAwayAtStart(t *testing.T, messages *messageTable) {
	r := messages.row(t, "redis does not answer: check")
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
func testNoBucketOfRecordings(t *testing.T, messages *messageTable) {
	r := messages.row(t, "recordings does not answer")
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
