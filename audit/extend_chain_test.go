package audit

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestNodesThatRecordAtOnceMakeOneChain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		const writers, each = 20, 25
		nodes := []*node{newNode(t, at), newNode(t, at), newNode(t, at)}
		var stops []func()

		for _, n := range nodes {
			stops = append(stops, n.run(t))
		}

		var wg sync.WaitGroup
		for w := range writers {
			n := nodes[w%len(nodes)]
			wg.Go(func() {
				for i := range each {
					user := fmt.Sprintf("%d-%d", w, i)
					if i%5 == 0 {
						n.Report(t.Context(), n.loginEntry(user))
					} else if err := n.Record(t.Context(), n.loginEntry(user)); err != nil {
						t.Error(err)
					}
				}
			})
		}

		// Changes in serializable transactions, like those of the directory.
		wg.Go(func() {
			for i := range each {
				err := nodes[0].db.Tx(t.Context(), func(tx *sql.Tx) error {
					return nodes[0].Insert(t.Context(), tx, nodes[0].loginEntry(fmt.Sprint("tx-", i)))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})

		wg.Wait()
		for _, stop := range stops {
			stop()
		}

		v, err := nodes[0].verifyLog(t)
		check(t, err)
		if v.First != 1 || v.Last != (writers+1)*each || v.Pending != 0 {
			t.Errorf("verified %+v, want %d entries", v, (writers+1)*each)
		}

		var ids int
		check(t, nodes[0].db.QueryRowContext(t.Context(), `SELECT COUNT(DISTINCT id) FROM audit_entries`).Scan(&ids))
		if ids != (writers+1)*each {
			t.Errorf("%d ids", ids)
		}
	})
}

func TestAManagementCommandsLineIsWrittenByTheNodeThatChainsIt(t *testing.T) {
	at := testdb.SQLite(t)
	command, server := newNode(t, at), newNode(t, at)
	ctx := WithCaller(t.Context(), Caller{Actor: "cli:root"})
	check(t, command.Record(ctx, command.Entry(ctx, UserCreate, "acme", "user:1")))
	check(t, server.ChainPending(t.Context()))
	if strings.Contains(command.logged.String(), "msg=audit") ||
		strings.Count(server.logged.String(), "msg=audit id=") != 1 {
		t.Errorf("the command logs %q, the server %q", command.logged, server.logged)
	}
}
