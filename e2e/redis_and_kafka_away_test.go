package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/testservice"
)

// TestRedisAway kills Redis while sockets are open.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	redis := testservice.OwnRedis(t)
	settings, prefix := backendSettings(t)
	settings["TRUNKLINE_REDIS_ADDRESS"] = redis.Addr
	c := newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix,
		newNode(t, "node 1", settings), newNode(t, "node 2", settings))
	token := c.nodes[0].login(t, apiPaths, user("alice"))
	open := []*subscriber{
		c.nodes[0].subscribe(t, subscription{paths: apiPaths, token: token}),
		c.nodes[1].subscribe(t, subscription{paths: apiPaths, token: token}),
	}

	for _, n := range c.nodes {
		n.awaitHealth(t, "ok", 2, patience)
	}

	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", 0), 1)
	for _, s := range open {
		s.awaitCount(t, 1)
	}

	id := open[0].events()[0].ID

	redis.Kill(t)
	for _, n := range c.nodes {
		n.awaitHealth(t, "degraded", 1, patience) // only its own connections
	}

	for _, n := range c.nodes { // new connections are accepted by their token alone, and resume
		open = append(open,
			n.subscribe(t, subscription{paths: wsPaths, token: token}),
			n.subscribe(t, subscription{paths: wsPaths, token: token, since: id, sse: true}))
	}

	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", 1), 1)
	for i, s := range open {
		got := numbers(t,
			s.await(t, "the event", func(got []event) bool { return len(got) > 0 && number(t, got[len(got)-1]) == 1 }))
		if i < 2 && !slices.Equal(got, []int{0, 1}) || i >= 2 && !slices.Equal(got, []int{1}) {
			t.Errorf("subscriber %d got %v", i, got)
		}
	}

	if a := c.nodes[0].tryLogin(t, apiPaths, user("bob")); a.status != http.StatusOK {
		t.Errorf("a login without Redis: %s", a)
	}

	redis.Start(t)
	for _, n := range c.nodes {
		n.awaitHealth(t, "ok", len(open), patience)
	}

	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", 2), 1)
	for _, s := range open {
		s.await(t, "the event after", func(got []event) bool { return number(t, got[len(got)-1]) == 2 })
	}
}

// TestKafkaAway kills brokers of a cluster of three while sockets are open.
func TestKafkaAway(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three brokers")
	}

	t.Parallel()
	brokers := testservice.KafkaCluster(t, 3)
	n := newNode(t, "node", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_BROKERS": strings.Join(brokers.Brokers(), ","),
		"TRUNKLINE_KAFKA_PARTITIONS": "3", "TRUNKLINE_INGEST_PRODUCE_TIMEOUT": "5s",
	})
	c := newCluster(t, brokers.Brokers(), "", n)
	token := n.login(t, apiPaths, user("alice"))
	stays := n.subscribe(t, subscription{paths: apiPaths, token: token})
	load := startPosters(t,
		&poster{name: "p", account: "demo", key: c.key, node: n, every: 50 * time.Millisecond},
		&poster{name: "q", account: "demo", key: c.key, node: n, every: 50 * time.Millisecond})
	load.awaitMore(t, 20)

	brokers.Kill(t, 0)
	load.awaitMore(t, 20)
	stays.awaitCount(t, len(stays.events())+1)
	brokers.Start(t, 0)
	load.awaitMore(t, 20)
	brokers.Pause(t, 1)
	load.awaitMore(t, 20)
	stays.awaitCount(t, len(stays.events())+1)
	brokers.Resume(t, 1)
	load.awaitMore(t, 20)

	// With two of three brokers down nothing can be acknowledged, and all connections stay open.
	brokers.Kill(t, 1)
	brokers.Kill(t, 2)
	eventually(t, "an answer that sends the record back", func() error {
		if a := n.post(t, c.key, "svc.cc", typeJSON,
			`{"Account-ID":"demo","Type":"AGENT_LOGIN","poster":"one","n":1}`); a.status != http.StatusServiceUnavailable ||
			a.header.Get("Retry-After") == "" {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	if h := n.health(t, apiPaths); h.Total != 1 {
		t.Errorf("health %+v", h)
	}

	brokers.Start(t, 1)
	brokers.Start(t, 2)
	load.awaitMore(t, 20)
	load.stop()
	got := load.awaitAll(t, stays, "")
	if _, again := dropRepeats(got); again != 0 || stays.endError() != nil {
		t.Errorf("%d events repeated; the socket ended with %v", again, stays.endError())
	}

	t.Logf("%d events on one socket through it all", len(got))
}
