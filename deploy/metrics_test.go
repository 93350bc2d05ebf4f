package deploy_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// later are metrics that a fresh server does not have, and why. An entry that
// is not needed any more fails the test.
var later = map[string]string{
	"trunkline_kafka_produced_records_total": "labelled by topic, made with the first batch",
	"trunkline_kafka_produced_bytes_total":   "labelled by topic, made with the first batch",
	"trunkline_kafka_commits_total":          "labelled by group, made with the first commit",
	"trunkline_kafka_lane_restarts_total":    "labelled by group, made with the first restart",
}

// TestAllThatIsAskedForExists scrapes fresh servers, one for each of the phone
// platforms that have metrics. A metric, label or value that a panel or an alert
// names is there before anything has happened: else its first event would be
// missed, and nobody would see a wrong name.
func TestAllThatIsAskedForExists(t *testing.T) {
	servers := []server{
		serve(t),
		serve(t, "TRUNKLINE_ORIGINATION_DRIVER=freeswitch", "TRUNKLINE_ORIGINATION_FREESWITCH_PASSWORD=x",
			"TRUNKLINE_ORIGINATION_FREESWITCH_ADDRESS="+freeAddress(t)),
	}
	queries := append(panelQueries(t), otherQueries(t)...)
	var needed map[string]bool
	eventually(t, "all that is asked for", func() (err error) {
		all := series{}
		for _, s := range servers {
			text, err := get(http.DefaultClient, "http://"+s.metrics+"/metrics")
			if err != nil {
				return err
			}
			if err := all.read(text); err != nil {
				return err
			}
		}
		needed, err = compare(all, queries)
		return err
	})
	for metric := range later {
		if !needed[metric] {
			t.Errorf("%s is there from the beginning, or nobody asks for it: take it from the list", metric)
		}
	}
}

// compare says what queries ask for that is neither there nor to come later.
func compare(all series, queries []asked) (needed map[string]bool, err error) {
	needed = map[string]bool{}
	var missing []string
	for _, q := range queries {
		for _, what := range all.lacks(q.expr) {
			if needed[what] = true; later[what] == "" {
				missing = append(missing, fmt.Sprintf("%s asks for %s: %s", q.by, what, q.expr))
			}
		}
	}
	if len(missing) > 0 {
		err = errors.New("not there:\n" + strings.Join(missing, "\n"))
	}
	return needed, err
}
