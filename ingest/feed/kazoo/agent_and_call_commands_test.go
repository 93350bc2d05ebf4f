package kazoo

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/telephony/crossbar"
)

// The requests to Crossbar for each action, its words when it refuses, and an account of ours that
// stands for one of Kazoo.
func TestCommandsOfActions(t *testing.T) {
	const acme, other = "/v2/accounts/" + acmeID, "/v2/accounts/" + subID
	documents := accountTree()
	maps.Copy(documents, map[string]any{
		acme + "/agents/a1/status": map[string]any{}, acme + "/agents/a1/queue_status": map[string]any{},
		acme + "/channels/c1":      map[string]any{},
		acme + "/agents/a5/status": nil, other + "/agents/a1/status": map[string]any{},
	})
	server := startCrossbar(t, documents)
	cfg := feed.Config{}
	cfg.SetDefaults()
	cfg.Name, cfg.Kind, cfg.CrossbarURL, cfg.CrossbarAPIKey = "kazoo", feed.KindKazoo, server.URL, apiKey
	p := newTestPlatform(t, cfg,
		accountsByName{"acme.example.com": "ours", "root.example.com": "both", "sub.example.com": "both"}, nil)
	all, err := accountsBelow(t.Context(), p.crossbar)
	if err != nil {
		t.Fatal(err)
	}

	p.setRealms(all)
	s := &session{platform: p}

	for name, c := range map[string]struct {
		command feed.Command
		kind    fault.Kind
		words   string
		sent    string
	}{
		"log in": {feed.Command{Action: feed.ActionLogin, AgentID: "a1"}, "", "",
			acme + `/agents/a1/status {"status":"login"}`},
		"log out": {feed.Command{Action: feed.ActionLogout, AgentID: "a1"}, "", "",
			acme + `/agents/a1/status {"status":"logout"}`},
		"break": {feed.Command{Action: feed.ActionBreak, AgentID: "a1"}, "", "",
			acme + `/agents/a1/status {"status":"pause"}`},
		"ready": {feed.Command{Action: feed.ActionReady, AgentID: "a1"}, "", "",
			acme + `/agents/a1/status {"status":"resume"}`},
		"join": {feed.Command{Action: feed.ActionJoin, AgentID: "a1", QueueID: "q1"}, "", "",
			acme + `/agents/a1/queue_status {"action":"login","queue_id":"q1"}`},
		"leave": {feed.Command{Action: feed.ActionLeave, AgentID: "a1", QueueID: "q1"}, "", "",
			acme + `/agents/a1/queue_status {"action":"logout","queue_id":"q1"}`},
		"hang up": {feed.Command{Action: feed.ActionHangup, CallID: "c1"}, "", "",
			acme + `/channels/c1 {"action":"hangup"}`},
		"transfer": {feed.Command{Action: feed.ActionTransfer, CallID: "c1", Destination: "7001"}, "", "",
			acme + `/channels/c1 {"action":"transfer","target":"7001"}`},
		"a reason": {feed.Command{Action: feed.ActionBreak, AgentID: "a1", Reason: "lunch"}, fault.KindConflict,
			"no reasons", ""},
		"hold": {feed.Command{Action: feed.ActionHold, CallID: "c1"}, fault.KindConflict, "(hold)", ""},
		"listen": {feed.Command{Action: feed.ActionListen, CallID: "c1", Extension: "1010"}, fault.KindConflict,
			"(listen)", ""},
		"nobody": {feed.Command{Action: feed.ActionBreak, AgentID: "a9"}, fault.KindRefused, "bad_identifier",
			""},
		"a path": {feed.Command{Action: feed.ActionBreak, AgentID: "a1 x"}, fault.KindConflict, "", ""},
		"a failure": {feed.Command{Action: feed.ActionBreak, AgentID: "a5"}, fault.KindUnavailable, "did not answer",
			""},
		"two accounts": {feed.Command{Action: feed.ActionBreak, AgentID: "a1", AccountID: "both"}, fault.KindConflict,
			"several", ""},
		"its own id": {feed.Command{Action: feed.ActionBreak, AgentID: "a1", AccountID: subID}, "", "",
			other + `/agents/a1/status {"status":"pause"}`},
	} {
		if c.command.AccountID == "" {
			c.command.AccountID = "ours"
		}

		err := s.Command(t.Context(), c.command)
		if fault.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %q with %q", name, err, c.kind, c.words)
		}

		if c.sent != "" && !slices.Contains(server.posts, "POST "+c.sent) {
			t.Errorf("%s: %q was not sent:\n%s", name, c.sent, strings.Join(server.posts, "\n"))
		}
	}

	server.Close()
	if err := s.Command(t.Context(),
		feed.Command{Action: feed.ActionBreak, AccountID: "ours", AgentID: "a1"}); fault.KindOf(
		err) != fault.KindUnavailable {
		t.Errorf("without Crossbar: %v", err)
	}

	p.crossbar = crossbar.New(startCrossbar(t, documents).URL, "another key", time.Second, server.Client())
	if err := s.Command(t.Context(),
		feed.Command{Action: feed.ActionBreak, AccountID: "ours", AgentID: "a1"}); fault.KindOf(
		err) != fault.KindRefused {
		t.Errorf("with a refused key: %v", err)
	}

	p.crossbar = nil
	if err := s.Command(t.Context(),
		feed.Command{Action: feed.ActionBreak, AccountID: "ours", AgentID: "a1"}); fault.KindOf(
		err) != fault.KindConflict {
		t.Errorf("a feed without Crossbar: %v", err)
	}
}
