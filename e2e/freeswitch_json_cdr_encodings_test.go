package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCallRecordsByCurl posts a captured click to call of four legs with curl in each encoding of
// mod_json_cdr, each time as another call, across the boundary of a month; and finds it.
func TestCallRecordsByCurl(t *testing.T) {
	t.Parallel()
	r := newRecordingUser(t, embeddedCluster(t).nodes[0])
	edge := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Unix()
	calls := 0

	for name, encoding := range map[string]struct {
		contentType string
		body        func(record string) string
	}{
		"json": {typeJSON, func(record string) string { return record }},
		"form": {"application/x-www-form-urlencoded",
			func(record string) string { return "cdr=" + url.QueryEscape(record) }},
		"json as a form": {"application/x-www-form-urlencoded", func(record string) string { return record }},
		"base64": {"application/x-www-form-base64-encoded",
			func(record string) string { return "cdr=" + base64.StdEncoding.EncodeToString([]byte(record)) }},
	} {
		t.Run(name, func(t *testing.T) {
			calls++
			prefix := fmt.Sprintf("%04x", calls) // of all ids of this call
			for _, leg := range lines(
				readFile(t, "../format/freeswitch/testdata/freeswitch.json_cdr/c2c-nobowout.in.jsonl")) {
				for _, id := range []string{"0079da6c", "04673e0b", "93505f3f", "c91d5c98", "38935054"} {
					leg = strings.ReplaceAll(leg, id+"-", prefix+id[:4]+"-")
				}

				leg = strings.ReplaceAll(leg, "1795169718", fmt.Sprint(edge-2)) // the start is in October
				leg = strings.ReplaceAll(leg, "1795169721", fmt.Sprint(edge+1)) // the end is in November
				file := filepath.Join(t.TempDir(), "cdr")
				if err := os.WriteFile(file, []byte(encoding.body(leg)), 0o600); err != nil {
					t.Fatal(err)
				}

				r.curl(t, "-H", "X-API-Key: "+r.key, "-H", "Content-Type: "+encoding.contentType, "--data-binary",
					"@"+file,
					r.url+"/api/v2/ingest/freeswitch.json_cdr?uuid=a_"+prefix)
			}

			id := "oc-" + prefix + "3893-8f29-47aa-959d-5d073dec3c8e"
			for month, span := range map[string][2]int64{"October": {edge - 31*86400, edge - 1},
				"November": {edge, edge + 30*86400}} {
				row := r.findRecord(t, span, id)
				if row.OriginationCallID != id || row.To != "1002" {
					t.Errorf("in %s: %+v", month, row)
				}

				var page struct {
					Data []callRecord `json:"data"`
				}
				r.decode(t, r.reports(t, span, "interaction_id="+row.InteractionID), &page)

				if len(page.Data) != 4 {
					t.Errorf("in %s the call has %d legs", month, len(page.Data))
				}
				if csv := string(r.reports(t, span, "format=csv")); strings.Count(csv, id) < 3 {
					t.Errorf("the CSV of %s: %s", month, csv)
				}
			}
		})
	}
}

func (r *recordingUser) reports(t *testing.T, span [2]int64, query string) []byte {
	t.Helper()
	return r.curl(t, "-H", "Authorization: Bearer "+r.token,
		fmt.Sprintf("%s/api/v2/reports/cdrs?startDate=%d&endDate=%d&%s", r.url, span[0], span[1], query))
}

// findRecord waits for all legs of the call and requests the record with the caller's id.
func (r *recordingUser) findRecord(t *testing.T, span [2]int64, id string) (row callRecord) {
	t.Helper()
	eventually(t, "the four legs of the call", func() error {
		var page struct {
			Data []callRecord `json:"data"`
		}
		r.decode(t, r.reports(t, span, "page_size=1000&interaction_id="+id), &page)

		if len(page.Data) < 4 {
			return errors.New("not yet")
		}

		return nil
	})

	if err := json.Unmarshal(r.reports(t, span, "origination_call_id="+id), &row); err != nil {
		t.Fatal(err)
	}

	return row
}
