package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// normalizedRecords returns the number of records that the node has normalized.
func (n *node) normalizedRecords() (records float64, err error) {
	_, text, err := n.probe("/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "trunkline_normalizer_records_total{") {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				return 0, err
			}
			records += value
		}
	}

	return records, err
}

// One of two normalizers is killed while records of 12 accounts arrive. The test measures the
// time from kill -9 until a subscriber has received, for each account, an event posted after it.
// docs/benchmarks.md has the figure.
func TestAKilledNormalizerIsReplacedSoon(t *testing.T) {
	t.Parallel()
	settings, prefix := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_KAFKA_PARTITIONS", "6")
	killed := newNode(t, "killed", withSettings(settings, "TRUNKLINE_ROLES", "normalizer"))
	c := newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix,
		newNode(t, "survivor", withSettings(settings, "TRUNKLINE_ROLES", "ingest,normalizer,fanout,api")))
	const accounts = 12

	posters := make([]*poster, accounts)
	for i := range posters {
		id := fmt.Sprint("takeover-", i)
		c.ingestNode.cli(t, "account", "create", id, "--id", id, "--domain", id+".test", "--parent", "demo")
		posters[i] = &poster{name: id, account: id, key: c.key, node: c.ingestNode, every: 100 * time.Millisecond}
	}

	s := c.ingestNode.subscribe(t,
		subscription{paths: apiPaths, token: c.ingestNode.login(t, apiPaths, user("alice")), sse: true})
	load := startPosters(t, posters...)
	load.awaitMore(t, 1)

	// awaitFlow waits until s has received an event of each account with a number at or above the
	// given ones.
	awaitFlow := func(from map[string]int) {
		t.Helper()
		missing := map[string]bool{}
		for account := range from {
			missing[account] = true
		}

		seen := 0
		s.await(t, "an event of each account", func(got []event) bool {
			for _, e := range got[seen:] {
				if o := postedRecordOf(t, e); o.N >= from[e.AccountID] {
					delete(missing, e.AccountID)
				}
			}

			seen = len(got)
			return len(missing) == 0
		})
	}

	// nextNumbers returns the number that each account's poster posts next.
	nextNumbers := func() map[string]int {
		next := map[string]int{}
		for _, p := range load.posters {
			p.mu.Lock()
			next[p.account] = p.next
			p.mu.Unlock()
		}

		return next
	}

	var took []time.Duration
	for range 3 {
		killed.startProcess(t)
		killed.awaitReady(t)
		eventually(t, "both to normalize", func() error {
			before, err := killed.normalizedRecords()
			if err != nil {
				return err
			}

			time.Sleep(300 * time.Millisecond) // some posts in between
			if now, err := killed.normalizedRecords(); err != nil || now <= before {
				return fmt.Errorf("%v records, then %v, %v", before, now, err)
			}

			return nil
		})

		awaitFlow(nextNumbers())
		from := nextNumbers()
		began := time.Now()
		killed.kill(t)
		awaitFlow(from)
		took = append(took, time.Since(began).Round(10*time.Millisecond))
	}

	load.stop()
	load.awaitAll(t, s, "")
	checkOrder(t, "the subscriber", s.events())
	t.Logf("members removed: %d", strings.Count(readFile(t, c.ingestNode.log), "silent member removed"))
	t.Logf("all accounts' events flow again %v after kill -9", took)
}
