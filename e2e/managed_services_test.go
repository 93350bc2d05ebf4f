package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/internal/testservice"
)

// TestManagedServices runs a node with the Kafka and Redis of managed services: TLS and signed
// tokens, and a Redis Cluster.
func TestManagedServices(t *testing.T) {
	t.Parallel()
	kafka := testservice.OwnManagedKafka(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(kafka.Sign(t, "trunkline", time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}

	n := newNode(t, "managed", map[string]string{
		"TRUNKLINE_KAFKA_BROKERS": kafka.Token, "TRUNKLINE_KAFKA_TLS_ENABLED": "true",
		"TRUNKLINE_KAFKA_TLS_CA_FILE":    kafka.CA.File,
		"TRUNKLINE_KAFKA_SASL_MECHANISM": "oauthbearer", "TRUNKLINE_KAFKA_SASL_OAUTH_TOKEN_FILE": token,
		"TRUNKLINE_REDIS_CLUSTER_ADDRESSES": testservice.RedisCluster(t)[0],
		"TRUNKLINE_REDIS_KEY_PREFIX":        testservice.Prefix(t),
		"TRUNKLINE_DIRECTORY_FILE":          directoryFile(t), "TRUNKLINE_MASTER_KEY": masterKey,
	})
	c := newCluster(t, []string{kafka.Token}, "", n)
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice"))})
	n.awaitHealth(t, "ok", 1, patience)
	n.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", 0), 1)
	s.awaitCount(t, 1)

	for range 10 { // one script counts failed logins in several keys
		n.tryLogin(t, apiPaths, credentials{Username: "bob", Password: "wrong", Domain: "demo.local"})
	}

	if a := n.tryLogin(t, apiPaths, user("bob")); a.status != http.StatusTooManyRequests {
		t.Errorf("a login after ten that failed: %s", a)
	}
	if text := readFile(t, n.log); strings.Contains(text, "CROSSSLOT") || strings.Contains(text, "Redis unavailable") {
		t.Errorf("the log is:\n%s", text)
	}
}
