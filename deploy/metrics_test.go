package deploy_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"trunkline/internal/freeport"
)

// TestAllThatIsAskedForExists scrapes fresh servers, one for each of the phone
// platforms that have metrics. A metric, label or value that a panel or an alert
// names is there before anything has happened: else its first event would be
// missed, and nobody would see a wrong name.
func TestAllThatIsAskedForExists(t *testing.T) {
	servers := []server{
		serve(t, "TRUNKLINE_STATS_MAX_LABEL_SETS=10"),
		serve(t, "TRUNKLINE_ORIGINATION_DRIVER=freeswitch", "TRUNKLINE_ORIGINATION_FREESWITCH_PASSWORD=x",
			"TRUNKLINE_ORIGINATION_FREESWITCH_ADDRESS="+freeport.Address(t),
			`TRUNKLINE_FEEDS=[{"name": "pbx", "kind": "freeswitch", "address": "`+freeport.Address(t)+`", "password": "x"}]`),
		serve(t, "TRUNKLINE_ORIGINATION_DRIVER=asterisk", "TRUNKLINE_ORIGINATION_ASTERISK_USERNAME=x",
			"TRUNKLINE_ORIGINATION_ASTERISK_SECRET=x", "TRUNKLINE_ORIGINATION_ASTERISK_ADDRESS="+freeport.Address(t)),
	}
	queries := append(panelQueries(t), otherQueries(t)...)
	eventually(t, "all that is asked for", func() error {
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
		return compare(all, queries)
	})
}

// compare says what queries ask for that is not there.
func compare(all series, queries []asked) error {
	var missing []string
	for _, q := range queries {
		for _, what := range all.lacks(q.expr) {
			missing = append(missing, fmt.Sprintf("%s asks for %s: %s", q.by, what, q.expr))
		}
	}
	if len(missing) > 0 {
		return errors.New("not there:\n" + strings.Join(missing, "\n"))
	}
	return nil
}
