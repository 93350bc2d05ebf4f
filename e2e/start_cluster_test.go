package e2e

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/freeport"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
)

// cluster is one Trunkline of one or more nodes, with the account demo, its users admin, alice
// and bob, and an API key.
type cluster struct {
	nodes        []*node
	ingestNode   *node
	channelNodes []*node // the nodes with the events channel
	key          string  // API key of demo

	brokers []string // of its Kafka
	prefix  string   // of its topics
}

// newCluster starts the nodes concurrently.
func newCluster(t testing.TB, brokers []string, prefix string, nodes ...*node) *cluster {
	t.Helper()
	c := &cluster{nodes: nodes, ingestNode: nodes[0], channelNodes: nodes, brokers: brokers, prefix: prefix}
	for _, n := range nodes {
		n.startProcess(t)
	}

	for _, n := range nodes {
		n.awaitReady(t)
	}

	c.key = c.ingestNode.cli(t, "apikey", "create", "--account", "demo", "--scope", "ingest,read,recordings,calls")
	c.awaitKey(t, c.key)
	return c
}

// lastChannelNode returns a node that is not the first one of the channel, unless there is only one.
func (c *cluster) lastChannelNode() *node { return c.channelNodes[len(c.channelNodes)-1] }

// embeddedCluster starts one node on the embedded backends, with simulated calls and further
// settings.
func embeddedCluster(t testing.TB, more ...string) *cluster {
	t.Helper()
	broker := freeport.Address(t)
	n := newNode(t, "embedded", withSettings(map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN": broker,
		"TRUNKLINE_ORIGINATION_DRIVER": "auto", "TRUNKLINE_ORIGINATION_INTERNATIONAL": "allow",
	}, more...))
	return newCluster(t, []string{broker}, "", n)
}

// masterKey is the master key of nodes that share a database.
var masterKey = strings.Repeat("0f1e2d3c", 8)

// backendSettings returns settings of nodes on shared Kafka, Redis and PostgreSQL.
func backendSettings(t testing.TB) (settings map[string]string, prefix string) {
	t.Helper()
	prefix = testservice.Prefix(t)
	return map[string]string{
		"TRUNKLINE_KAFKA_BROKERS": strings.Join(testservice.Kafka(t), ","), "TRUNKLINE_KAFKA_TOPIC_PREFIX": prefix,
		"TRUNKLINE_REDIS_ADDRESS": testservice.Redis(t), "TRUNKLINE_REDIS_KEY_PREFIX": prefix,
		"TRUNKLINE_DATABASE_URL":   testservice.Postgres(t),
		"TRUNKLINE_DIRECTORY_FILE": directoryFile(t), "TRUNKLINE_MASTER_KEY": masterKey,
	}, prefix
}

// withSettings returns the settings with further ones.
func withSettings(settings map[string]string, more ...string) map[string]string {
	joined := map[string]string{}
	for name, value := range settings {
		joined[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		joined[more[i]] = more[i+1]
	}
	return joined
}

// splitRolesCluster starts one node for ingest and two for the channel, on real Kafka, Redis and
// PostgreSQL, with further settings.
func splitRolesCluster(t testing.TB, more ...string) *cluster {
	t.Helper()
	settings, prefix := backendSettings(t)
	settings = withSettings(settings, more...)
	c := newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix,
		newNode(t, "ingest", withSettings(settings, "TRUNKLINE_ROLES", "ingest,normalizer,api")),
		newNode(t, "fanout 1", withSettings(settings, "TRUNKLINE_ROLES", "fanout,api")),
		newNode(t, "fanout 2", withSettings(settings, "TRUNKLINE_ROLES", "fanout,api")),
	)
	c.channelNodes = c.nodes[1:]

	return c
}

// allRolesCluster starts two nodes with all roles, on the same backends.
func allRolesCluster(t testing.TB) *cluster {
	t.Helper()
	settings, prefix := backendSettings(t)
	return newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix,
		newNode(t, "node 1", settings), newNode(t, "node 2", settings))
}

// directoryFile writes the directory of the embedded demo to a file.
func directoryFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "directory.yaml")
	text := `
accounts:
  - {id: demo, name: Demo, domain: demo.local}
users:
  - {account: demo, username: admin, password: ` + password + `, role: admin}
  - {account: demo, username: alice, password: ` + password + `, presence_id: "1001"}
  - {account: demo.local, username: bob, password: ` + password + `, presence_id: "1002"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

// kafka returns a client of the cluster's Kafka.
func (c *cluster) kafka(t testing.TB) *kafka.Cluster {
	t.Helper()
	settings := kafka.DefaultSettings(c.brokers...)
	settings.TopicPrefix = c.prefix
	opened, err := kafka.Open(t.Context(), kafka.Config{Settings: settings},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(opened.Close)
	return opened
}
