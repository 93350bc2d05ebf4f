package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFiguresOfASnapshot posts calls of a queue to a server: the snapshot of the events channel
// and the report of queues must have today's service level.
func TestFiguresOfASnapshot(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	midnight := time.Now().UTC().Truncate(24 * time.Hour)

	// Two calls are answered in time, one late, and one caller hangs up after the
	// short limit.
	body := "[" + strings.Join([]string{
		queueCallEvents("support", "c1", "1001", midnight, 5*time.Second, time.Minute),
		queueCallEvents("support", "c2", "1001", midnight, 10*time.Second, time.Minute),
		queueCallEvents("support", "c3", "1002", midnight, 40*time.Second, time.Minute),
		queueCallEvents("support", "c4", "", midnight, 12*time.Second, 0),
	}, ",") + "]"
	if a := n.post(t, c.key, "generic", typeJSON, body); a.status != http.StatusAccepted {
		t.Fatalf("ingest answers %s", a)
	}

	token := n.login(t, apiPaths, user("alice"))
	type figures struct {
		QueueID            string  `json:"queue_id"`
		Offered            int     `json:"offered"`
		Answered           int     `json:"answered"`
		Abandoned          int     `json:"abandoned"`
		ServiceLevel       float64 `json:"service_level"`
		ServiceLevelStrict float64 `json:"service_level_strict"`
	}

	want := figures{"support", 4, 3, 1, 0.5, 0.5}
	expect := func(where string, list []figures, a answer) error {
		if time.Now().UTC().Truncate(24*time.Hour) != midnight {
			t.Skip("another day has begun")
		}
		if len(list) != 1 || list[0] != want {
			return fmt.Errorf("%s: %s", where, a)
		}

		return nil
	}

	eventually(t, "today's service level in the snapshot", func() error {
		a := n.mustCall(t, http.MethodGet, "/api/v2/cc_events_channel/snapshot", bearer(token), "")
		var snapshot struct{ Queues []figures }
		if err := json.Unmarshal(a.body, &snapshot); a.status != http.StatusOK || err != nil {
			return fmt.Errorf("%s %v", a, err)
		}
		return expect("snapshot", snapshot.Queues, a)
	})

	var portal struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(n.tryPortalLogin(t).body, &portal); err != nil {
		t.Fatal(err)
	}

	path := fmt.Sprintf("/api/v2/reports/queues?startDate=%d&endDate=%d&interval=86400", midnight.Unix(),
		midnight.Unix()+86399)
	a := n.mustCall(t, http.MethodGet, path, bearer(portal.AccessToken), "")
	var page struct{ Data []figures }
	if err := json.Unmarshal(a.body, &page); a.status != http.StatusOK || err != nil {
		t.Fatalf("%s %v", a, err)
	}
	if err := expect("report", page.Data, a); err != nil {
		t.Error(err)
	}
}
