package e2e

import (
	"regexp"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func regexpOf(text string) *regexp.Regexp { return regexp.MustCompile(regexp.QuoteMeta(text)) }

// testClocks runs a node on a Redis whose clock is an hour ahead, and corrects it later.
func testClocks(t *testing.T, messages *messageTable) {
	redis := miniredis.RunT(t)
	redis.SetTime(time.Now().Add(time.Hour))
	n := newNode(t, "an hour behind",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_REDIS_ADDRESS": redis.Addr()})
	n.start(t)
	r := messages.row(t, "clocks disagree")
	n.awaitMessage(t, r)

	if count := n.countMessages(t, r); count != 1 {
		t.Errorf("logged %d times", count)
	}

	// Tokens do not depend on Redis's clock.
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice"))})
	defer s.close()

	redis.SetTime(time.Time{}) // the machine's clock from now on
	eventually(t, "the clocks to agree",
		func() error { return n.checkMetric(`trunkline_clock_skew_seconds{against="redis"}`, "0") })
}
