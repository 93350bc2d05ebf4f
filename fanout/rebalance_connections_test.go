package fanout

import (
	"fmt"
	"testing"
	"time"

	"trunkline/identity"
)

// fleetNode is a node with its subscribers, ten of an account.
type fleetNode struct {
	rebalancer
	here map[*subscriber]bool
}

func newFleetNode(period time.Duration, accounts, sockets int) *fleetNode {
	n := &fleetNode{rebalancer: rebalancer{period: period}, here: map[*subscriber]bool{}}
	for i := range accounts {
		p := &identity.Principal{AccountID: fmt.Sprint("account-", i)}
		for range sockets {
			n.here[&subscriber{principal: p}] = true
		}
	}
	return n
}

func (n *fleetNode) list() []*subscriber {
	all := make([]*subscriber, 0, len(n.here))
	for s := range n.here {
		all = append(all, s)
	}
	return all
}

// run lets time pass in steps of presenceInterval; others is the number of connections
// on the other nodes, and goes says whether a disconnected subscriber goes to them. It
// returns the most that were disconnected in a second, and how many in all.
func (n *fleetNode) run(from time.Time, during time.Duration, nodes int, others *int,
	goes func(*subscriber) bool) (fastest, all int) {
	second, inSecond := from, 0
	for at := from; at.Before(from.Add(during)); at = at.Add(presenceInterval) {
		if at.Sub(second) >= time.Second {
			second, inSecond = at, 0
		}

		for _, s := range n.nextToDisconnect(at, clusterSize{nodes, len(n.here), *others}, n.list) {
			inSecond++
			all++
			if goes(s) {
				delete(n.here, s)
				*others++
			}
		}

		fastest = max(fastest, inSecond)
	}

	return fastest, all
}

// TestAnAddedNodeGetsItsShareInTime: one of five nodes is new and empty. A balancer
// that counts sends each connection to it; one that hashes accounts sends it a fifth
// of the accounts, and the others come back.
func TestAnAddedNodeGetsItsShareInTime(t *testing.T) {
	const period, accounts, sockets = 10 * time.Minute, 1000, 10
	toNew := func(*subscriber) bool { return true }
	fifth := func(s *subscriber) bool {
		var i int
		if _, err := fmt.Sscanf(s.principal.AccountID, "account-%d", &i); err != nil {
			t.Fatal(err)
		}
		return i%5 == 0
	}

	for _, test := range []struct {
		name                 string
		goes                 func(*subscriber) bool
		maxMoved, minStaying int
	}{
		{"a balancer that counts", toNew, 1900, 8100},
		{"a balancer that hashes accounts", fifth, 10000, 8000},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, others := newFleetNode(period, accounts, sockets), 3*accounts*sockets
			began := time.Now()
			if _, all := n.run(began, time.Minute, 4, &others, test.goes); all != 0 {
				t.Fatalf("%d disconnected while there was no excess", all)
			}

			fastest, all := n.run(began.Add(time.Minute), period+time.Minute, 5, &others, test.goes)
			share := float64(len(n.here)+others) / 5
			t.Logf("%d of %d connections disconnected, at most %d in a second; %d stay, the share is %.0f", all,
				accounts*sockets, fastest, len(n.here), share)

			if float64(len(n.here)) > share*(1+rebalanceUntil)+1 || len(n.here) < test.minStaying {
				t.Errorf("%d connections stay, the share is %.0f", len(n.here), share)
			}
			if all > test.maxMoved || fastest > accounts*sockets/int(period.Seconds()*0.9)+sockets {
				t.Errorf("%d disconnected, at most %d in a second", all, fastest)
			}
			if _, more := n.run(began.Add(3*period), 3*period, 5, &others, test.goes); more != 0 {
				t.Errorf("%d disconnected although no node was added", more)
			}
		})
	}
}

// TestARoundDisconnectsEachConnectionOnce: where every connection comes back, a node
// tries each once and gives up until another node is added.
func TestARoundDisconnectsEachConnectionOnce(t *testing.T) {
	const period = time.Minute
	n, others := newFleetNode(period, 30, 7), 0
	began := time.Now()
	stay := func(*subscriber) bool { return false }
	n.run(began, time.Second, 1, &others, stay)

	if _, all := n.run(began.Add(time.Second), 10*period, 2, &others, stay); all != len(n.here) {
		t.Errorf("%d disconnected, want each of %d once", all, len(n.here))
	}
	if _, all := n.run(began.Add(20*period), 10*period, 3, &others, stay); all != len(n.here) {
		t.Errorf("%d disconnected after another node, want %d", all, len(n.here))
	}
}

// TestAccountsMoveTogether: what a round disconnects is whole accounts, also where the
// node reaches its share within one; of an account that is most of a node it
// disconnects no more than the excess and a twentieth.
func TestAccountsMoveTogether(t *testing.T) {
	const period = time.Minute
	gone := func(*subscriber) bool { return true }
	n, others := newFleetNode(period, 30, 7), 0
	began := time.Now()
	n.run(began, time.Second, 1, &others, gone)
	n.run(began.Add(time.Second), 2*period, 2, &others, gone)
	staying := map[string]int{} // connections by account

	for s := range n.here {
		staying[s.principal.AccountID]++
	}

	for account, sockets := range staying {
		if sockets != 7 {
			t.Errorf("%d of 7 connections of %s stay", sockets, account)
		}
	}

	large, others := newFleetNode(period, 1, 1000), 0
	large.run(began, time.Second, 1, &others, gone)
	large.run(began.Add(time.Second), 2*period, 2, &others, gone)

	if len(large.here) < 440 || len(large.here) > 560 {
		t.Errorf("%d of 1000 connections of a large account stay", len(large.here))
	}
}
