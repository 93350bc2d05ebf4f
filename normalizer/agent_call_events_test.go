package normalizer

import (
	"encoding/json"
	"testing"

	"trunkline/event"
)

// An agent who answers has one begin and one end of its call, with agent, call and talking time;
// one who does not has none.
func TestAnAgentsCallBeginsAndEndsOnce(t *testing.T) {
	type call struct{ starts, ends int }
	for file, want := range map[string]map[string]call{
		"../stats/testdata/stories/freeswitch-transfer-to-queue.ndjson.gz": {"1001@pbx.example.com": {1, 1},
			"1003@pbx.example.com": {1, 1}},
		"../stats/testdata/stories/freeswitch-three-callers-one-rings.ndjson.gz": {},
		"../format/asterisk/testdata/asterisk.ami/queue-answered.in.jsonl":       {"Local/agent1@agents/n": {1, 1}},
		"../format/asterisk/testdata/asterisk.ami/queue-no-answer.in.jsonl":      {},
		"../format/kazoo/testdata/kazoo.call_event/agent-leg.in.jsonl":           {"a-1": {1, 1}},
	} {
		got := map[string]call{}
		for _, m := range tellStory(t, readRecords(t, file)) {
			var message struct {
				Type     event.Type
				Metadata struct{ Facts event.Facts }
			}
			if err := json.Unmarshal(m, &message); err != nil {
				t.Fatal(err)
			}

			f := &message.Metadata.Facts
			of := got[f.AgentID]
			switch message.Type {
			case event.AgentCallStart:
				of.starts++
			case event.AgentCallEnd:
				of.ends++
				if !f.TalkMS.Known {
					t.Errorf("%s: no talk_ms: %s", file, m)
				}
			default:
				continue
			}

			if f.AgentID == "" || f.CallID == "" {
				t.Errorf("%s: no agent or call: %s", file, m)
			}

			got[f.AgentID] = of
		}

		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}

		for agent, calls := range want {
			if got[agent] != calls {
				t.Errorf("%s: %s: got %+v, want %+v", file, agent, got[agent], calls)
			}
		}
	}
}
