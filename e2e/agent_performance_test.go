package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The figures of an agent's interval arrive as one AGENT_PERFORMANCE event, for subscribers that
// request the type, also when nodes are killed meanwhile.

func TestAgentPerformanceIsSentOnceEmbedded(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	c.testAgentPerformance(t, c.nodes...)
}

func TestAgentPerformanceIsSentOnceReal(t *testing.T) {
	t.Parallel()
	c := allRolesCluster(t)
	c.testAgentPerformance(t, c.nodes...)
}

func (c *cluster) testAgentPerformance(t *testing.T, killed ...*node) {
	const rounds, agents = 3, 20
	ask := func(types ...string) *subscriber {
		token := c.channelNodes[0].login(t, apiPaths, user("alice").types(types...))
		return keepSubscribed(t, subscription{paths: apiPaths, token: token, since: "earliest", cursor: true},
			c.channelNodes...)
	}

	asked, all, custom := ask("AGENT_PERFORMANCE"), ask(), ask("AGENT_CUSTOM_EVENT")

	// Each agent has been logged in since two minutes after the start of an interval, and has a
	// row in this interval and in each later one.
	first := time.Now().Add(-2 * time.Hour).Truncate(15 * time.Minute)
	begun := time.Now()
	for round := range rounds {
		var records []string
		for agent := range agents {
			records = append(records,
				fmt.Sprintf(`{"type":"AGENT_LOGIN","timestamp":%d,"data":{"agent_id":"agent-%d-%d"}}`,
					first.Add(2*time.Minute).Unix(), round, agent))
		}

		before := asked.events()
		c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, "["+strings.Join(records, ",")+"]", len(records))
		asked.await(t, "new messages", func(got []event) bool { // intervals are being closed
			kept, _ := dropRepeats(got)
			known, _ := dropRepeats(before)
			return len(kept) > len(known)
		})

		t.Logf("round %d: messages after %v", round+1, time.Since(begun).Round(time.Millisecond))
		n := killed[round%len(killed)]
		n.kill(t)
		n.startProcess(t)
		n.awaitReady(t)
	}

	t.Logf("restarted after %v", time.Since(begun).Round(time.Millisecond))
	over := time.Now().Add(-time.Minute)

	// Figures of later events follow.
	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, `{"type":"AGENT_LOGIN","data":{"agent_id":"last"}}`, 1)
	want := map[performanceRow]bool{}
	for round := range rounds {
		for agent := range agents {
			for start := first; !start.Add(15 * time.Minute).After(over); start = start.Add(15 * time.Minute) {
				row := performanceRow{fmt.Sprintf("agent-%d-%d", round, agent), start.Unix(), 900, 900_000}
				if start.Equal(first) {
					row.LoggedInMS -= 120_000
				}
				want[row] = true
			}
		}
	}

	asked.await(t, fmt.Sprintf("%d messages", len(want)), func(got []event) bool {
		kept, _ := dropRepeats(got) // a subscriber that resumes may receive the events after its cursor again
		return len(kept) >= len(want)
	})

	t.Logf("all messages after %v", time.Since(begun).Round(time.Millisecond))
	all.await(t, "the last login", func(got []event) bool {
		return len(got) > 0 && strings.Contains(string(got[len(got)-1].Data), `"last"`)
	})
	ids := map[performanceRow]string{}

	received, _ := dropRepeats(asked.events())
	for _, e := range received {
		row := agentRow(t, e)
		if e.Type != "AGENT_PERFORMANCE" || e.Metadata.OriginalFormat != "trunkline.performance" ||
			row.IntervalStart+row.IntervalSeconds != e.Timestamp {
			t.Errorf("%s of format %s at %d: %s", e.Type, e.Metadata.OriginalFormat, e.Timestamp, e.Data)
		}
		if before, ok := ids[row]; ok {
			t.Errorf("%s and %s are both %+v", before, e.ID, row)
		}

		ids[row] = e.ID
	}

	for row := range want {
		if ids[row] == "" {
			t.Errorf("no message %+v", row)
		}
	}

	for name, s := range map[string]*subscriber{"a login without types": all,
		"a login with AGENT_CUSTOM_EVENT": custom} {
		for _, e := range s.events() {
			if e.Type == "AGENT_PERFORMANCE" {
				t.Errorf("%s receives %s", name, e.Data)
			}
		}
	}
}

type performanceRow struct {
	AgentID         string `json:"agent_id"`
	IntervalStart   int64  `json:"interval_start"`
	IntervalSeconds int64  `json:"interval_seconds"`
	LoggedInMS      int64  `json:"logged_in_ms"`
}

func agentRow(t *testing.T, e event) (row performanceRow) {
	t.Helper()
	if err := json.Unmarshal(e.Data, &row); err != nil {
		t.Fatalf("%s: %v", e.Data, err)
	}
	return row
}
