package e2e

import (
	"regexp"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func regexpOf(text string) *regexp.Regexp { return regexp.MustCompile(regexp.QuoteMeta(text)) }

// testClocks gives a node a Redis whose clock is an hour ahead, and later right.
func testClocks(t *testing.T, p *sayings) {
	redis := miniredis.RunT(t)
	redis.SetTime(time.Now().Add(time.Hour))
	n := newNode(t, "an hour behind", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_REDIS_ADDRESS": redis.Addr()})
	n.start(t)
	r := p.row(t, "clocks disagree")
	n.awaitSays(t, r)
	if said := n.says(t, r); said != 1 {
		t.Errorf("said %d times", said)
	}
	// Tokens do not depend on it.
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice"))})
	defer s.close()
	redis.SetTime(time.Time{}) // from now on it has the machine's
	eventually(t, "the clocks to agree", func() error { return n.metric(`trunkline_clock_skew_seconds{against="redis"}`, "0") })
}
