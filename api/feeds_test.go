package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// fakeFeeds has a feed of every account.
type fakeFeeds struct{}

func (fakeFeeds) FeedStatuses(_ context.Context, account string) ([]feed.Status, error) {
	return []feed.Status{
		{Name: "pbx", Kind: "asterisk", Node: "node-1", State: feed.StateStandby},
		{Name: "pbx", Kind: "asterisk", Node: "node-2", State: feed.StateConnected, ConnectedAt: 1, Events: 7},
	}, nil
}

func (fakeFeeds) CheckFeed(_ context.Context, account, name string) (*feed.CheckResult, error) {
	if name != "pbx" {
		return nil, fault.NotFound("Feed not found")
	}
	return &feed.CheckResult{
		Connected: true, Subscription: []string{"agents"},
		State:    &feed.CheckedState{Agents: 2, Notes: []string{"no devices"}},
		Event:    &feed.CheckedEvent{Format: "asterisk", Names: []string{account}, Value: json.RawMessage(`{"a":1}`)},
		Problems: []feed.CheckProblem{{Message: "redundancy", Advice: "set 1"}},
	}, nil
}

func TestFeedsAreListed(t *testing.T) {
	e := newEnv(t)
	admin := bearer(e.loginUser("admin").AccessToken)
	var page struct {
		Data []feed.Status
		Next string `json:"next_start_key"`
	}
	e.ask(200, "GET", "/api/v2/feeds?page_size=1",
		header{"Authorization": admin["Authorization"], "X-Account-ID": "demo"}, "", &page)

	if len(page.Data) != 1 || page.Data[0].Node != "node-1" || page.Next == "" {
		t.Errorf("%+v", page)
	}
}

func TestCheckOfAFeed(t *testing.T) {
	e := newEnv(t)
	admin := e.as("admin", "")
	var result feed.CheckResult
	e.ask(200, "POST", "/api/v2/feeds/pbx/check", admin, "", &result)

	if !result.Connected || result.OK || result.State.Agents != 2 || string(result.Event.Value) != `{"a":1}` ||
		result.Problems[0].Advice != "set 1" {
		t.Errorf("%+v", result)
	}

	e.ask(404, "POST", "/api/v2/feeds/other/check", admin, "", nil)
	if got := audittest.Entries(t, e.audit, "demo", "feed.check"); len(got) != 1 ||
		!strings.Contains(got[0], "feed:pbx") {
		t.Errorf("audit %q", got)
	}
}
