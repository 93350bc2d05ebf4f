package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/kafka"
)

// The captured sessions, some of them from other packages.
var capturedFiles = map[string]string{
	"simple":       "../format/freeswitch/testdata/simple.jsonl",
	"callcenter":   "testdata/freeswitch/callcenter.jsonl",
	"c2c-nobowout": "../origination/freeswitch/testdata/talk.jsonl",
	"plain":        "../format/freeswitch/testdata/simple.esl.txt",
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// The expected types of the call center session, in this order; its other records are the
// switch's own and get the custom type.
var callcenterEventTypes = []string{
	"svc_cc_queue_on_agent_state_event", // agent-status-change Available
	"svc_cc_queue_on_call_event",        // member-queue-start
	"AGENT_CUSTOM_EVENT",                // members-count
	"svc_cc_queue_on_agent_state_event", // agent-state-change
	"svc_cc_queue_on_call_event",        // agent-offering
	"svc_cc_queue_on_call_event",        // bridge-agent-start
	"AGENT_CUSTOM_EVENT",                // members-count
	"svc_cc_queue_on_agent_state_event", // agent-state-change
	"svc_cc_queue_on_call_event",        // bridge-agent-end
	"svc_cc_queue_on_call_event",        // member-queue-end
	"svc_cc_queue_on_agent_state_event", // agent-state-change
	"AGENT_BREAK_START",                 // agent-status-change On Break
	"AGENT_LOGOUT",                      // agent-status-change Logged Out
}

func (c *cluster) testFreeSWITCH(t *testing.T) {
	for _, session := range []struct {
		name, format, contentType string
		records                   []string // data of each event, byte for byte
		body                      string
	}{
		{"callcenter", "freeswitch.callcenter", "application/x-ndjson", nil, ""},
		{"simple", "freeswitch.event", "application/x-ndjson", nil, ""},
		{"c2c-nobowout", "freeswitch.event", "application/x-ndjson", nil, ""},
		{"plain", "freeswitch.event", "text/event-plain", nil, ""},
	} {
		t.Run(session.name, func(t *testing.T) {
			account := "fs-" + session.name
			w := c.createAccountAndUser(t, account, "demo")
			key := c.ingestNode.cli(t, "apikey", "create", "--account", account,
				"--scope", "ingest,read,recordings,calls")
			c.awaitKey(t, key)
			n := c.lastChannelNode()
			s := n.subscribe(t, subscription{paths: wsPaths, token: n.login(t, wsPaths, w)})
			body := readFile(t, capturedFiles[session.name])
			want := lines(body)

			if session.name == "plain" {
				want = lines(readFile(t, capturedFiles["simple"])) // the same session
			}

			c.ingestNode.postAccepted(t, key, session.format, session.contentType, body, len(want))
			got := s.awaitCount(t, len(want))
			if unique := slices.Compact(slices.Sorted(slices.Values(ids(got)))); len(got) != len(want) ||
				len(unique) != len(want) {
				t.Fatalf("%d events, %d ids, for %d records", len(got), len(unique), len(want))
			}

			var told, legs []string
			for i, e := range got {
				if session.name == "plain" {
					compareFields(t, want[i], string(e.Data))
				} else if !hasRecord(e.Data, want[i]) {
					t.Errorf("data of %d is\n%s\nwant\n%s", i, e.Data, want[i])
				}

				if e.AccountID != account || e.Metadata.OriginalFormat != session.format {
					t.Errorf("event %d: %s", i, s.texts()[i])
				}

				if bytes.Contains(e.Data, []byte(`"CC-Action":`)) {
					told = append(told, e.Type)
				} else if e.Type == "AGENT_CALL_START" || e.Type == "AGENT_CALL_END" {
					legs = append(legs, e.Type)
				} else if e.Type != "AGENT_CUSTOM_EVENT" {
					t.Errorf("a switch event is %s", e.Type)
				}
			}

			if session.name == "callcenter" && !slices.Equal(told, callcenterEventTypes) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(callcenterEventTypes, "\n"))
			}
			if session.name == "callcenter" && !slices.Equal(legs, []string{"AGENT_CALL_START", "AGENT_CALL_END"}) {
				t.Errorf("the agent's leg told %v", legs)
			}
			if session.name != "callcenter" && (told != nil || legs != nil) {
				t.Errorf("a call center in session %s: %v", session.name, told)
			}
		})
	}
}

// compareFields compares an event received as text with the switch's own JSON of the same event.
// The JSON has the sequence numbers of its own socket.
func compareFields(t *testing.T, want, got string) {
	t.Helper()
	var a, b map[string]any
	if err := errors.Join(json.Unmarshal([]byte(want), &a), json.Unmarshal([]byte(got), &b)); err != nil {
		t.Fatal(err)
	}

	if a["Event-Name"] != b["Event-Name"] || a["Unique-ID"] != b["Unique-ID"] ||
		a["Event-Date-Timestamp"] != b["Event-Date-Timestamp"] ||
		a["Channel-Name"] != b["Channel-Name"] {
		t.Errorf("the record\n%s\nwant\n%s", got, want)
	}
}

// testCallRecords posts the bodies of mod_json_cdr as the module does and reads the rows from the
// topic.
func (c *cluster) testCallRecords(t *testing.T) {
	files, err := filepath.Glob("../format/freeswitch/testdata/freeswitch.json_cdr/*.in.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]string{} // by call id: the posted call record
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".in.jsonl")
		if name != "simple" && name != "callcenter" && name != "c2c-nobowout" {
			continue // records made to test errors
		}

		for i, text := range lines(readFile(t, file)) {
			var document struct {
				Variables struct {
					UUID string `json:"uuid"`
				} `json:"variables"`
			}
			if err := json.Unmarshal([]byte(text), &document); err != nil {
				t.Fatal(err)
			}

			uuid := document.Variables.UUID
			contentType, body := typeJSON, text
			if i%2 == 1 {
				contentType, body = "application/x-www-form-urlencoded", "cdr="+url.QueryEscape(text)
			}

			c.ingestNode.postAccepted(t, c.key, "freeswitch.json_cdr?uuid=a_"+uuid, contentType, body, 1)
			want[uuid] = contentType
		}
	}

	if len(want) < 8 {
		t.Fatalf("%d captured call records", len(want))
	}

	rows := map[string]int{}
	opened := c.kafka(t)
	eventually(t, "a row for every call record", func() error {
		clear(rows)
		for _, r := range readTopic(t, opened, "cdr") {
			var row struct {
				CallID string `json:"call_id"`
			}
			if err := json.Unmarshal(r.Value, &row); err != nil {
				t.Fatal(err)
			}

			rows[row.CallID]++
		}

		if len(rows) != len(want) {
			return errors.New("not yet")
		}

		return nil
	})

	for uuid, contentType := range want {
		if rows[uuid] != 1 {
			t.Errorf("%d rows of %s, posted as %s", rows[uuid], uuid, contentType)
		}
	}

	t.Logf("%d call records, rows of %d", len(want), len(slices.Collect(maps.Keys(rows))))
}

// readTopic reads all current records of a topic.
func readTopic(t testing.TB, opened *kafka.Cluster, topic string) []kafka.Record {
	t.Helper()
	partitions, err := opened.Partitions(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}

	var all []kafka.Record
	for n := range partitions {
		first, next, err := opened.Offsets(t.Context(), topic, n)
		if err != nil {
			t.Fatal(err)
		}

		reader := opened.NewReader(topic, n, first)
		for reader.Next() < next {
			records, err := reader.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for i := range records {
				all = append(all, *records[i].Clone())
			}
		}

		reader.Close()
	}

	return all
}
