package normalizer

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/registry"
)

// Sessions as they were captured: what only the state makes known is in names, types
// and facts.
func TestACapturedSession(t *testing.T) {
	for _, c := range []struct{ format, file, story string }{
		{"freeswitch.callcenter", "freeswitch/testdata/freeswitch.callcenter/captured", sessionStory},
		{"freeswitch.callcenter", "freeswitch/testdata/freeswitch.callcenter/status-in-call", statusStory},
		{"asterisk.ami", "asterisk/testdata/asterisk.ami/member-removed-while-ringing", removedStory},
	} {
		t.Run(c.file, func(t *testing.T) { checkSession(t, c.format, c.file, c.story) })
	}
}

// checkSession plays a captured session twice, so that the agents log in again.
func checkSession(t *testing.T, format, file, story string) {
	in, err := os.ReadFile("../format/" + file + ".in.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		for line := range bytes.Lines(append(in, in...)) {
			r := rawEvent(0, today(), "acme")
			r.Value, r.Headers[0].Value = bytes.TrimSpace(line), []byte(format)
			k.Append(r)
		}

		runUntilIdle(newTestNormalizer(t, k, accountsFunc(func(string) (bool, error) { return true, nil }),
			event.TopicRaw))
		var got []string

		for _, r := range k.All(event.TopicEvents, 0) {
			m, ok, err := event.MessageFacts(r.Value)
			f := m.Metadata.Facts
			if err != nil || !ok || string(r.Header(event.HeaderName)) != string(f.Name) {
				t.Fatalf("%s: %v", r.Value, err)
			}

			if f.Name != event.NameOther {
				got = append(got,
					strings.TrimSpace(
						fmt.Sprintf("%s %s %s %s>%s", r.Header(event.HeaderType), f.Name, f.AgentID, f.PreviousState,
							f.State)))
			}
		}

		if want := strings.Split(strings.TrimSpace(story), "\n"); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		checkState(t, k)
	})
}

const sessionStory = `
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 >available
svc_cc_queue_on_call_event queue.call_entered  >waiting
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 available>ringing
svc_cc_queue_on_call_event queue.call_offered 1002@127.0.0.20 waiting>ringing
svc_cc_queue_on_call_event queue.call_answered 1002@127.0.0.20 ringing>talking
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 talking>talking
svc_cc_queue_on_call_event queue.call_ended 1002@127.0.0.20 talking>ended
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 available>available
AGENT_BREAK_START agent.break_start 1002@127.0.0.20 available>break
AGENT_LOGOUT agent.logout 1002@127.0.0.20 break>offline
AGENT_LOGIN agent.login 1002@127.0.0.20 offline>available
svc_cc_queue_on_call_event queue.call_entered  ended>waiting
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 available>ringing
svc_cc_queue_on_call_event queue.call_offered 1002@127.0.0.20 waiting>ringing
svc_cc_queue_on_call_event queue.call_answered 1002@127.0.0.20 ringing>talking
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 talking>talking
svc_cc_queue_on_call_event queue.call_ended 1002@127.0.0.20 talking>ended
svc_cc_queue_on_agent_state_event agent.state 1002@127.0.0.20 available>available
AGENT_BREAK_START agent.break_start 1002@127.0.0.20 available>break
AGENT_LOGOUT agent.logout 1002@127.0.0.20 break>offline
`

// The status of an agent in a call changes to Available, On Break and Available.
const statusStory = `
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com >available
svc_cc_queue_on_call_event queue.call_entered  >waiting
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com available>ringing
svc_cc_queue_on_call_event queue.call_offered 1003@pbx.example.com waiting>ringing
svc_cc_queue_on_call_event queue.call_answered 1003@pbx.example.com ringing>talking
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com talking>talking
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com talking>talking
AGENT_BREAK_START agent.break_start 1003@pbx.example.com talking>talking
AGENT_BREAK_END agent.break_end 1003@pbx.example.com talking>talking
svc_cc_queue_on_call_event queue.call_ended 1003@pbx.example.com talking>ended
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com available>available
AGENT_LOGOUT agent.logout 1003@pbx.example.com available>offline
AGENT_LOGIN agent.login 1003@pbx.example.com offline>available
svc_cc_queue_on_call_event queue.call_entered  ended>waiting
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com available>ringing
svc_cc_queue_on_call_event queue.call_offered 1003@pbx.example.com waiting>ringing
svc_cc_queue_on_call_event queue.call_answered 1003@pbx.example.com ringing>talking
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com talking>talking
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com talking>talking
AGENT_BREAK_START agent.break_start 1003@pbx.example.com talking>talking
AGENT_BREAK_END agent.break_end 1003@pbx.example.com talking>talking
svc_cc_queue_on_call_event queue.call_ended 1003@pbx.example.com talking>ended
svc_cc_queue_on_agent_state_event agent.state 1003@pbx.example.com available>available
AGENT_LOGOUT agent.logout 1003@pbx.example.com available>offline
`

// A member is removed from its queue while its phone rings, and answers.
const removedStory = `
AGENT_QUEUE_JOIN agent.queue_join Local/300@agents/n >available
AGENT_CUSTOM_EVENT call.created  >ringing
AGENT_CUSTOM_EVENT call.answered  ringing>talking
svc_cc_queue_on_call_event queue.call_entered  talking>waiting
svc_cc_queue_on_call_event queue.call_offered Local/300@agents/n waiting>ringing
svc_cc_queue_on_agent_state_event agent.state Local/300@agents/n ringing>ringing
AGENT_LOGOUT agent.logout Local/300@agents/n ringing>offline
svc_cc_queue_on_call_event queue.call_answered Local/300@agents/n ringing>talking
AGENT_CUSTOM_EVENT call.bridged Local/300@agents/n talking>talking
svc_cc_queue_on_call_event queue.call_ended Local/300@agents/n talking>talking
AGENT_CUSTOM_EVENT call.ended  talking>ended
AGENT_LOGIN agent.login Local/300@agents/n offline>available
AGENT_CUSTOM_EVENT call.created  ended>ringing
AGENT_CUSTOM_EVENT call.answered  ringing>talking
svc_cc_queue_on_call_event queue.call_entered  talking>waiting
svc_cc_queue_on_call_event queue.call_offered Local/300@agents/n waiting>ringing
svc_cc_queue_on_agent_state_event agent.state Local/300@agents/n ringing>ringing
AGENT_LOGOUT agent.logout Local/300@agents/n ringing>offline
svc_cc_queue_on_call_event queue.call_answered Local/300@agents/n ringing>talking
AGENT_CUSTOM_EVENT call.bridged Local/300@agents/n talking>talking
svc_cc_queue_on_call_event queue.call_ended Local/300@agents/n talking>talking
AGENT_CUSTOM_EVENT call.ended  talking>ended
`

// TestAnAgentsDayHasTheSameNamesOnFreeSWITCHAndAsterisk plays a captured day of an
// agent of each platform twice: the second one begins where the agent is known
// to be offline.
func TestAnAgentsDayHasTheSameNamesOnFreeSWITCHAndAsterisk(t *testing.T) {
	day := func(path, formatName, agent, without string) (names []string) {
		in, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		f, ok := registry.Lookup(formatName)
		if !ok {
			t.Fatal(formatName)
		}

		partition, id := state.NewPartition(), event.NextID(0, testRecorded.UnixMilli(), 0)
		again := false
		for range 2 {
			for line := range bytes.Lines(in) {
				if without != "" && bytes.Contains(line, []byte(without)) {
					continue
				}

				e, err := f.ReadEvent(bytes.TrimSpace(line), new(format.Fields))
				if err != nil {
					t.Fatal(err)
				}

				id = event.NextID(id, 0, 0)
				applied := state.Event{ID: id, Account: "acme", Timestamp: testRecorded.Unix(), Facts: e.Facts}
				partition.CompleteAndFold(&applied)

				if again && applied.Facts.AgentID == agent {
					switch applied.Facts.Name {
					case event.NameAgentLogin, event.NameAgentBreakStart, event.NameAgentBreakEnd,
						event.NameAgentLogout:
						names = append(names, string(applied.Facts.Name))
					}
				}
			}

			again = true
		}

		return slices.Compact(names) // Asterisk has an event for each queue of the agent
	}

	const login, pause, back, logout = "agent.login", "agent.break_start", "agent.break_end", "agent.logout"
	// This captured FreeSWITCH agent does not come back from its break.
	if got := day("../format/freeswitch/testdata/freeswitch.callcenter/captured.in.jsonl", "freeswitch.callcenter",
		"1002@127.0.0.20", ""); !slices.Equal(got, []string{login, pause, logout}) {
		t.Errorf("FreeSWITCH: %v", got)
	}

	// This one does.
	if got := day("../format/freeswitch/testdata/freeswitch.callcenter/break-return.in.jsonl", "freeswitch.callcenter",
		"1001@pbx.example.com", ""); !slices.Equal(got, []string{login, pause, back, logout}) {
		t.Errorf("FreeSWITCH, break and return: %v", got)
	}

	// This captured agent of Asterisk is in two queues, and leaves one of them.
	const asterisk, agent = "../format/asterisk/testdata/asterisk.ami/member-add-pause-unpause-penalty-remove.in.jsonl", "Local/agent4@agents/n"
	if got := day(asterisk, "asterisk.ami", agent, "beta-sales"); !slices.Equal(got,
		[]string{login, pause, back, pause, back, logout}) {
		t.Errorf("Asterisk, one queue: %v", got)
	}

	// a break is a pause in both
	if got := day(asterisk, "asterisk.ami", agent, ""); !slices.Equal(got, []string{pause, back}) {
		t.Errorf("Asterisk, two queues: %v", got)
	}
}
