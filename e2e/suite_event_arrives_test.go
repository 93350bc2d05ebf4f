package e2e

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

var eventIDPattern = regexp.MustCompile(`^cc_evt_[1-9][0-9]{18}$`)

func (c *cluster) testEventArrives(t *testing.T) {
	const account = "arrives"
	w := c.createAccountAndUser(t, account, "demo")
	var all []*subscriber

	for _, n := range c.channelNodes {
		for _, p := range []paths{apiPaths, wsPaths} {
			token := n.login(t, p, w)
			all = append(all,
				n.subscribe(t, subscription{paths: p, token: token}),
				n.subscribe(t, subscription{paths: p, token: token, tokenInQuery: true, cursor: true}),
				n.subscribe(t, subscription{paths: p, token: token, sse: true}))
		}
	}

	records := []string{
		`{"Account-ID":"arrives", "Queue-ID" : "support","Type":"svc_cc_queue_on_call_event", "price":1.0, "big":12345678901234567890,` +
			` "text":"Zo\u00eb \u2028 \"q\" <b>&", "n":0, "CDR":{"Call-ID":"c1","channel":{}}, "history":[] }`,
		`{"Account-ID":"arrives","Type":"AGENT_LOGIN","n":1}`,
		"{\n  \"Account-ID\": \"arrives\",\n  \"Type\": \"svc_cc_queue_on_agent_state_event\",\r\n  \"n\": 2\n}",
	}
	before := time.Now().Unix()
	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, records[0], 1)
	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, "["+records[1]+","+records[2]+"]", 2)
	c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson",
		record(account, 3)+"\n"+record(account, 4)+"\n", 2)
	records = append(records, record(account, 3), record(account, 4))

	first := all[0].awaitCount(t, len(records))
	for i, e := range first {
		if !hasRecord(e.Data, records[i]) {
			t.Errorf("data is\n%s\nwant\n%s", e.Data, records[i])
		}

		wantType := [...]string{"svc_cc_queue_on_call_event", "AGENT_LOGIN",
			"svc_cc_queue_on_agent_state_event"}[min(i, 2)]
		if i > 2 {
			wantType = "svc_cc_queue_on_call_event"
		}
		if e.Type != wantType || e.AccountID != account || !eventIDPattern.MatchString(e.ID) {
			t.Errorf("event %d is %+v", i, e)
		}
		if i > 0 && e.ID <= first[i-1].ID {
			t.Errorf("id %s comes after %s", e.ID, first[i-1].ID)
		}

		m := e.Metadata
		if m == nil || m.OriginalFormat != "svc.cc" || !strings.HasPrefix(m.Source, "apikey:") ||
			m.ProcessedAt < before || m.ProcessedAt > time.Now().Unix() || e.Timestamp < before-1 {
			t.Errorf("event %d has metadata %+v, timestamp %d", i, m, e.Timestamp)
		}
	}

	if q0, q1 := first[0].Metadata.QueueID, first[1].Metadata.QueueID; q0 != "support" || q1 != "" {
		t.Errorf("queue ids %q and %q", q0, q1)
	}

	want := all[0].texts()
	for i, s := range all[1:] {
		s.awaitCount(t, len(records))
		for j, text := range s.texts() {
			// An event stream consists of lines, so a carriage return in a message becomes a line
			// feed, which is equivalent white space in JSON.
			same := want[j]
			if s.ask.sse {
				same = bytes.ReplaceAll(same, []byte("\r\n"), []byte("\n"))
			}
			if !bytes.Equal(text, same) {
				t.Errorf("subscriber %d gets\n%s\nwant\n%s", i+1, text, same)
			}
		}
	}
}
