package api

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/cdrindex"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

const cdrReportPath = "/api/v2/reports/cdrs"

// cdrTopic is one partition of the cdr topic in memory.
type cdrTopic struct{ *kafkatest.Log }

func (t cdrTopic) put(rows ...event.CDR) {
	for _, row := range rows {
		value, _ := json.Marshal(row)                                      // a row always marshals
		_, offset, _ := t.Offsets(context.Background(), event.TopicCDR, 0) // it has no error
		t.Append(kafka.Record{Topic: event.TopicCDR, Time: time.Unix(row.Timestamp, 0), Value: value,
			Headers: []kafka.Header{{Key: event.HeaderPosition,
				Value: []byte(event.Position{Offset: offset}.String())}}})
	}
}

// addCallReports adds the real index over the test's database.
func (e *env) addCallReports(deps *Deps, log *slog.Logger) *cdrindex.Index {
	e.t.Helper()
	index, err := cdrindex.New(e.t.Context(), cdrindex.Settings{}, e.db, e.metricRegistry, log)
	must(e.t, err)
	e.cdr = cdrTopic{kafkatest.NewLog(1)}
	indexer := cdrindex.NewIndexer(index, e.cdr, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = indexer.Run(ctx) })
	e.t.Cleanup(func() { cancel(); running.Wait() })
	deps.CallReports, deps.Audit = index, e.audit

	return index
}

// callStart is in Unix seconds.
const callStart = 1_795_000_000

// cdrOfLeg is the record of a leg that began n seconds after callStart.
func cdrOfLeg(account, call string, n int64) event.CDR {
	return event.CDR{ID: "202611-" + call, AccountID: account, CallID: call, InteractionID: "i-" + account,
		To: "+15550001", Timestamp: callStart + n, EndedTime: callStart + n + 5}
}

func cdrReport(query string) string {
	return cdrReportPath + "?startDate=" + strconv.Itoa(callStart) + "&endDate=" + strconv.Itoa(callStart+1000) + query
}

func TestCallReports(t *testing.T) {
	e := newEnv(t)
	found := cdrOfLeg("demo", "b-leg", 3)
	found.OriginationCallID = "oc-1"
	found.CustomSIPHeaders = json.RawMessage(`{"svc_call_type":"clicktocall"}`)
	e.cdr.put(cdrOfLeg("demo", "a-leg", 1), found, cdrOfLeg("demo", "c-leg", 7),
		cdrOfLeg("stranger", "x", 2), cdrOfLeg("sub", "s-leg", 2))

	alice := bearer(e.loginUser("alice").AccessToken)
	waitFor(t, func() bool {
		var page cdrindex.Page
		e.ask(200, "GET", cdrReport(""), alice, "", &page)
		return len(page.Data) == 3
	})

	var row event.CDR
	e.ask(200, "GET", cdrReport("&origination_call_id=oc-1"), alice, "", &row)
	if row.CallID != "b-leg" {
		t.Errorf("found %+v", row)
	}

	e.ask(404, "GET", cdrReport("&origination_call_id=oc-"), alice, "", nil)
	e.ask(404, "GET", cdrReport("&origination_call_id=oc-%25"), alice, "", nil)

	var first, second cdrindex.Page
	e.ask(200, "GET", cdrReport("&page_size=2"), alice, "", &first)
	e.ask(200, "GET", cdrReport("&page_size=2&start_key="+first.NextStartKey), alice, "", &second)

	if first.Data[0].CallID != "c-leg" || len(second.Data) != 1 || second.Data[0].CallID != "a-leg" ||
		second.NextStartKey != "" {
		t.Errorf("pages %+v, %+v", first, second)
	}

	for _, w := range []string{
		e.ask(200, "GET", cdrReport("&format=csv"), alice, "", nil).Body.String(),
		e.ask(200, "GET", cdrReport(""), header{"Authorization": alice["Authorization"], "Accept": "text/csv"}, "",
			nil).Body.String(),
	} {
		rows, err := csv.NewReader(strings.NewReader(w)).ReadAll()
		if err != nil || len(rows) != 4 || rows[0][0] != "id" || rows[1][2] != "c-leg" {
			t.Errorf("csv %v %v", rows, err)
		}
	}

	aliceIn := func(account string) header {
		return header{"Authorization": alice["Authorization"], "X-Account-ID": account}
	}
	var page cdrindex.Page
	e.ask(200, "GET", cdrReport(""), aliceIn("sub"), "", &page)

	if len(page.Data) != 1 || page.Data[0].CallID != "s-leg" {
		t.Errorf("sub has %+v", page.Data)
	}

	e.ask(404, "GET", cdrReport(""), aliceIn("stranger"), "", nil)
	e.ask(401, "GET", cdrReport(""), nil, "", nil)
	e.ask(403, "GET", cdrReport(""), bearer(e.eventsToken("alice")), "", nil)
}

func TestCallReportRefusals(t *testing.T) {
	e := newEnv(t)
	alice := bearer(e.loginUser("alice").AccessToken)
	for query, field := range map[string]string{
		"": "startDate", "?startDate=1": "endDate", "?startDate=x&endDate=2": "startDate",
		"?startDate=5&endDate=2":        "endDate",
		"?startDate=0&endDate=34560001": "endDate", "?startDate=1&endDate=2&page_size=0": "page_size",
		"?startDate=1&endDate=2&page_size=1001": "page_size", "?startDate=1&endDate=2&start_key=zzz": "start_key",
		"?startDate=1&endDate=2&format=csv&origination_call_id=a":                   "origination_call_id",
		"?startDate=1&endDate=2&origination_call_id=" + strings.Repeat("a", 10<<10): "origination_call_id",
	} {
		w := e.ask(400, "GET", cdrReportPath+query, alice, "", nil)
		if !strings.Contains(w.Body.String(), `"field":"`+field+`"`) {
			t.Errorf("%.60s: %s", query, w.Body)
		}
	}
}
