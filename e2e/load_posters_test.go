package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// poster posts numbered records of one account to one node, one body after another, also while
// the node is down, and records the acknowledged ones.
type poster struct {
	name, account, key string
	node               *node
	every              time.Duration // interval between bodies

	mu    sync.Mutex
	acked map[int]bool // numbers that were acknowledged
	next  int          // numbers below it were posted
}

// postedLoad is a set of running posters.
type postedLoad struct {
	posters []*poster
	stop    func()
}

// startPosters starts posters; they stop at the end of the test at the latest.
func startPosters(t testing.TB, posters ...*poster) *postedLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup

	for _, p := range posters {
		p.acked = make(map[int]bool)
		working.Go(func() { p.run(ctx) })
	}

	load := &postedLoad{posters, func() { cancel(); working.Wait() }}
	t.Cleanup(load.stop)
	return load
}

func (p *poster) run(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()

	for size := 1; ; size = size%3 + 1 { // one record, or two, or three
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		first := p.next
		var body strings.Builder
		for n := first; n < first+size; n++ {
			fmt.Fprintf(&body, `{"Account-ID":%q,"Type":"svc_cc_queue_on_call_event","poster":%q,"n":%d}`+"\n",
				p.account, p.name, n)
		}

		a, err := p.node.call(context.WithoutCancel(ctx), http.MethodPost, "/api/v2/ingest/svc.cc",
			map[string]string{"X-API-Key": p.key, "Content-Type": "application/x-ndjson"}, body.String())
		p.mu.Lock()

		p.next += size
		for n := first; n < p.next && err == nil && a.status == http.StatusAccepted; n++ {
			p.acked[n] = true
		}
		p.mu.Unlock()
	}
}

func (p *poster) acknowledged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// awaitMore waits until every poster has a number of further acknowledgements.
func (load *postedLoad) awaitMore(t testing.TB, more int) {
	t.Helper()
	for _, p := range load.posters {
		goal := p.acknowledged() + more
		eventually(t, p.name+" to be acknowledged", func() error {
			if n := p.acknowledged(); n < goal {
				return fmt.Errorf("%d of %d", n, goal)
			}
			return nil
		})
	}
}

// postedRecord identifies the posted record of an event.
type postedRecord struct {
	Poster string `json:"poster"`
	N      int    `json:"n"`
}

func postedRecordOf(t testing.TB, e event) postedRecord {
	t.Helper()
	var p postedRecord
	if err := json.Unmarshal(e.Data, &p); err != nil || p.Poster == "" {
		t.Fatalf("not of a poster: %s", e.Data)
	}
	return p
}

// awaitAll waits until s has received every acknowledged record of the account, or of all
// accounts for "". The load must have stopped.
func (load *postedLoad) awaitAll(t testing.TB, s *subscriber, account string) []event {
	t.Helper()
	missing := map[postedRecord]bool{}
	for _, p := range load.posters {
		for n := range p.acked {
			if account == "" || p.account == account {
				missing[postedRecord{p.name, n}] = true
			}
		}
	}

	seen := 0
	return s.await(t, fmt.Sprintf("all %d acknowledged records", len(missing)), func(got []event) bool {
		for _, e := range got[seen:] {
			delete(missing, postedRecordOf(t, e))
		}
		seen = len(got)
		return len(missing) == 0
	})
}

// checkOrder checks that ids rise in each account, and each poster's numbers with them: no record
// twice, none out of order.
func checkOrder(t testing.TB, who string, events []event) {
	t.Helper()
	lastID, lastN := map[string]string{}, map[string]int{}
	for _, e := range events {
		from := postedRecordOf(t, e)
		if e.ID <= lastID[e.AccountID] {
			t.Errorf("%s: in %s, %s comes after %s", who, e.AccountID, e.ID, lastID[e.AccountID])
		}
		if last, ok := lastN[from.Poster]; ok && from.N <= last {
			t.Errorf("%s: %s sends %d after %d", who, from.Poster, from.N, last)
		}

		lastID[e.AccountID], lastN[from.Poster] = e.ID, from.N
	}
}

// dropRepeats removes repeated events and returns their number.
func dropRepeats(events []event) (kept []event, again int) {
	seen := map[string]bool{}
	for _, e := range events {
		if seen[e.ID] {
			again++
			continue
		}
		seen[e.ID] = true
		kept = append(kept, e)
	}

	return kept, again
}
