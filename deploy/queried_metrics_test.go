package deploy_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"trunkline/internal/freeport"
)

// TestAllThatIsAskedForExists scrapes new servers, one for each phone platform with metrics.
// Every metric, label and value that a panel or an alert uses must exist before the first event:
// otherwise the first increase would be lost, and wrong names would go unnoticed.
func TestAllThatIsAskedForExists(t *testing.T) {
	servers := []server{
		serve(t, "TRUNKLINE_STATS_MAX_LABEL_SETS=10"),
		serve(t, "TRUNKLINE_ORIGINATION_DRIVER=freeswitch", "TRUNKLINE_ORIGINATION_FREESWITCH_PASSWORD=x",
			"TRUNKLINE_ORIGINATION_FREESWITCH_ADDRESS="+freeport.Address(t),
			`TRUNKLINE_FEEDS=[{"name": "pbx", "kind": "freeswitch", "address": "`+freeport.Address(
				t)+`", "password": "x"}]`),
		serve(t, "TRUNKLINE_ORIGINATION_DRIVER=asterisk", "TRUNKLINE_ORIGINATION_ASTERISK_USERNAME=x",
			"TRUNKLINE_ORIGINATION_ASTERISK_SECRET=x", "TRUNKLINE_ORIGINATION_ASTERISK_ADDRESS="+freeport.Address(t)),
	}

	queries := append(panelQueries(t), otherQueries(t)...)
	eventually(t, "every metric in use", func() error {
		all := series{}
		for _, s := range servers {
			text, err := get(http.DefaultClient, "http://"+s.metrics+"/metrics")
			if err != nil {
				return err
			}

			if err := all.addScrape(text); err != nil {
				return err
			}
		}

		return checkQueries(all, queries)
	})
}

// checkQueries reports the parts of the queries that do not exist.
func checkQueries(all series, queries []query) error {
	var missing []string
	for _, q := range queries {
		for _, what := range all.missing(q.expr) {
			missing = append(missing, fmt.Sprintf("%s asks for %s: %s", q.source, what, q.expr))
		}
	}

	if len(missing) > 0 {
		return errors.New("not there:\n" + strings.Join(missing, "\n"))
	}

	return nil
}
