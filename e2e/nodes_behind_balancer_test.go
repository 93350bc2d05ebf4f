package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/deploy/balancer"
	"trunkline/internal/freeport"
)

// startBalancer starts HAProxy with compose's configuration in front of the nodes, of which the first
// serves everything except the channel. change may modify the configuration; nil: unchanged.
func startBalancer(t testing.TB, change func(config string) string, nodes ...*node) *node {
	t.Helper()
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is not installed")
		}
		t.Skip("NOT TESTED: haproxy is not installed")
	}

	fleet := balancer.LocalFleet{Listen: freeport.Address(t), TLS: true}
	for _, n := range nodes {
		fleet.Fanout = append(fleet.Fanout,
			balancer.Node{Public: n.address, Metrics: strings.TrimPrefix(n.probes, "http://")})
	}

	fleet.Core = fleet.Fanout[0]
	config, err := fleet.HAProxy()
	if err != nil {
		t.Fatal(err)
	}

	if change != nil {
		config = change(config)
	}

	dir := t.TempDir()
	file, log := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "haproxy.log")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()

	cmd := exec.Command(haproxy, "-f", file)
	cmd.Stdout, cmd.Stderr = output, output
	child, err := startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = child.process.Signal(syscall.SIGTERM)
		<-child.exited
		if t.Failed() {
			t.Logf("the log of haproxy:\n%s", readFile(t, log))
		}
	})

	b := &node{name: "balancer", url: "http://" + fleet.Listen, address: fleet.Listen, child: child,
		// so that it chooses a node for each request
		web: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	eventually(t, "the balancer", func() error {
		a, err := b.call(t.Context(), http.MethodGet, apiPaths.health, nil, "")
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%s", a)
		}
		return err
	})

	return b
}

// admittingNode returns the running node that admits a subscriber.
func admittingNode(t testing.TB, through *node, ask subscription, nodes ...*node) (*node, error) {
	t.Helper()
	const opened = "trunkline_fanout_opened_total"
	before := map[*node]float64{}

	for _, n := range nodes {
		if n.child == nil || !n.child.running() {
			continue
		}

		value, err := n.metricSum(opened)
		if err != nil {
			return nil, err
		}

		before[n] = value
	}

	c, err := ask.connect(t.Context(), through)
	if err != nil {
		return nil, err
	}
	defer c.close()

	for n, was := range before {
		if now, err := n.metricSum(opened); err != nil || now > was {
			return n, err
		}
	}

	return nil, errors.New("no node has admitted the subscriber")
}

// TestAccountsMeetBehindTheBalancer checks that all subscribers of an account reach the same
// node, whichever user logs in and wherever the token is; that an added node takes accounts from
// the others and moves none between them; and that the accounts of a killed node return to it.
func TestAccountsMeetBehindTheBalancer(t *testing.T) {
	t.Parallel()
	settings, prefix := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_KAFKA_PARTITIONS", "16")
	first, second := newNode(t, "first", settings), newNode(t, "second",
		withSettings(settings, "TRUNKLINE_ROLES", "fanout"))
	added := newNode(t, "added", withSettings(settings, "TRUNKLINE_ROLES", "fanout"))
	c := newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix, first, second)
	nodes := []*node{first, second, added}

	// The limit of a node's share could move the third of three subscribers to another node.
	b := startBalancer(t, func(config string) string {
		const bound = "hash-balance-factor 150\n"
		if !strings.Contains(config, bound) {
			t.Fatalf("haproxy.cfg has no %s", bound)
		}
		return strings.Replace(config, bound, "\n", 1)
	}, nodes...)

	const accounts = 8
	asks := map[string][]subscription{}
	for i := range accounts {
		id := fmt.Sprint("fleet-", i)
		c.ingestNode.cli(t, "account", "create", id, "--id", id, "--domain", id+".test", "--parent", "demo")
	}

	for i := range accounts {
		id := fmt.Sprint("fleet-", i)
		for j, name := range []string{"alice", "bob"} {
			var granted struct {
				Token string `json:"access_token"`
			}
			eventually(t, "the account "+id, func() error {
				a := b.tryLogin(t, apiPaths, user(name).accounts(id))
				if err := json.Unmarshal(a.body, &granted); err != nil || a.status != http.StatusOK {
					return fmt.Errorf("%s, %v", a, err)
				}
				return nil
			})

			asks[id] = append(asks[id],
				subscription{paths: apiPaths, token: granted.Token, tokenInQuery: j == 0, sse: j == 1})
		}
	}

	// homes returns the node of each account, once all its subscribers are connected to the same
	// one.
	homes := func() (map[string]*node, error) {
		at := map[string]*node{}
		for id, subscriptions := range asks {
			for _, ask := range subscriptions {
				n, err := admittingNode(t, b, ask, nodes...)
				if err != nil {
					return nil, err
				}

				if at[id] != nil && at[id] != n {
					return nil, fmt.Errorf("subscribers of %s are on %s and on %s", id, at[id].name, n.name)
				}

				at[id] = n
			}
		}

		return at, nil
	}

	var before map[string]*node
	eventually(t, "subscribers to meet", func() (err error) {
		before, err = homes()
		return err
	})

	if sizes := countByNode(before); sizes["first"] == 0 || sizes["second"] == 0 {
		t.Fatalf("accounts by node: %v", sizes)
	}

	added.start(t)
	eventually(t, "the added node to take accounts", func() error {
		after, err := homes()
		if err != nil {
			return err
		}

		for id, n := range after {
			if n != added && n != before[id] {
				return fmt.Errorf("%s went from %s to %s", id, before[id].name, n.name)
			}
		}

		t.Logf("accounts by node: %v, then %v", countByNode(before), countByNode(after))
		if countByNode(after)["added"] == 0 {
			return errors.New("it takes none")
		}

		return nil
	})

	added.kill(t)
	eventually(t, "the accounts to go back", func() error {
		after, err := homes()
		if err == nil && !maps.Equal(after, before) {
			err = fmt.Errorf("accounts by node: %v", countByNode(after))
		}
		return err
	})
}

func countByNode(homes map[string]*node) map[string]int {
	sizes := map[string]int{}
	for _, n := range homes {
		sizes[n.name]++
	}
	return sizes
}

// TestAnAddedNodeGetsConnections adds a second node behind the balancer to one that has all
// subscribers. Accounts move to it at once with a close reason, and no subscriber misses an
// event.
func TestAnAddedNodeGetsConnections(t *testing.T) {
	t.Parallel()
	settings, prefix := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_FANOUT_REBALANCE_TIME", "15s", "TRUNKLINE_KAFKA_PARTITIONS", "16")
	first, added := newNode(t, "first", settings), newNode(t, "added",
		withSettings(settings, "TRUNKLINE_ROLES", "fanout"))
	c := newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix, first)
	b := startBalancer(t, nil, first, added)

	const accounts, sockets = 8, 3
	var reconnecting []*subscriber
	var posters []*poster

	for i := range accounts {
		id := fmt.Sprint("fleet-", i)
		c.ingestNode.cli(t, "account", "create", id, "--id", id, "--domain", id+".test", "--parent", "demo")
		posters = append(posters,
			&poster{name: id, account: id, key: c.key, node: c.ingestNode, every: 200 * time.Millisecond})
	}

	for i := range accounts {
		w := user("alice").accounts(fmt.Sprint("fleet-", i))
		eventually(t, "the account", func() error {
			if a := first.tryLogin(t, apiPaths, w); a.status != http.StatusOK {
				return fmt.Errorf("%s", a)
			}
			return nil
		})

		ask := subscription{paths: apiPaths, token: first.login(t, apiPaths, w), since: "earliest"}
		for range sockets {
			reconnecting = append(reconnecting, keepSubscribed(t, ask, b))
		}
	}

	load := startPosters(t, posters...)
	load.awaitMore(t, 1)

	added.start(t)
	eventually(t, "the added node to have connections", func() error {
		here, err := added.metricSum("trunkline_fanout_connections")
		if err == nil && here < sockets {
			err = fmt.Errorf("it has %v", here)
		}
		return err
	})

	eventually(t, "everybody to be connected", func() error {
		var all float64
		for _, n := range []*node{first, added} {
			here, err := n.metricSum("trunkline_fanout_connections")
			if err != nil {
				return err
			}
			all += here
		}

		if all != accounts*sockets {
			return fmt.Errorf("%v connections", all)
		}

		return nil
	})

	load.awaitMore(t, 1)
	load.stop()
	for i, s := range reconnecting {
		load.awaitAll(t, s, fmt.Sprint("fleet-", i/sockets))
		checkOrder(t, "a reconnecting subscriber", s.events())
	}

	moved, err := first.metricSum("trunkline_fanout_rebalanced_total")
	if err != nil || moved < sockets || moved > accounts*sockets {
		t.Errorf("%v connections were disconnected, %v", moved, err)
	}

	here, err := added.metricSum("trunkline_fanout_connections")
	t.Logf("%v of %d connections were disconnected; the added node has %v, %v", moved, accounts*sockets, here, err)
}

// TestClientsOfANodeThatShutsDownAreAdmittedElsewhere shuts down one of two nodes behind the balancer,
// which both have sockets of one account. Its clients connect again at once, and are admitted at the
// first attempt: compose's drain_delay is longer than the balancer needs to notice that /readyz fails.
func TestClientsOfANodeThatShutsDownAreAdmittedElsewhere(t *testing.T) {
	t.Parallel()
	compose := string(readFile(t, "../deploy/compose.yaml"))
	_, delay, found := strings.Cut(compose, "TRUNKLINE_DRAIN_DELAY: ")
	if !found {
		t.Fatal("compose.yaml sets no drain_delay")
	}

	settings, prefix := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_DRAIN_DELAY", strings.Fields(delay)[0])
	core, ending := newNode(t, "core", settings), newNode(t, "ending",
		withSettings(settings, "TRUNKLINE_ROLES", "fanout"))
	newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix, core, ending)
	b := startBalancer(t, nil, core, ending)
	ask := subscription{paths: apiPaths, token: core.login(t, apiPaths, user("alice"))}

	const sockets = 40
	again := make(chan error, sockets)
	for range sockets {
		c, err := ask.connect(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(c.close)
		go func() {
			for err := error(nil); err == nil; {
				_, err = c.next()
			}

			next, err := ask.connect(t.Context(), b)
			if err == nil {
				next.close()
			}

			again <- err
		}()
	}

	here, err := ending.metricSum("trunkline_fanout_connections")
	if err != nil || here == 0 || here == sockets {
		t.Fatalf("%v of %d connections are at the node that shuts down, %v", here, sockets, err)
	}

	ending.signal(t, syscall.SIGTERM)
	for range int(here) {
		if err := <-again; err != nil {
			t.Errorf("a client is not admitted as it connects again: %v", err)
		}
	}

	if code, ok := ending.awaitExit(patience); !ok || code != 0 {
		t.Errorf("exit %d, %v", code, ok)
	}
}
