package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// batch returns one body with the account's records from from to before to.
func batch(account string, from, to int) string {
	var body strings.Builder
	for n := from; n < to; n++ {
		body.WriteString(record(account, n) + "\n")
	}
	return body.String()
}

func sequence(from, to int) []int {
	var list []int
	for n := from; n < to; n++ {
		list = append(list, n)
	}
	return list
}

// testResume closes a connection and resumes on the other node from every kind of position.
func (c *cluster) testResume(t *testing.T) {
	const half, whole = 60, 120
	w := c.createAccountAndUser(t, "resume", "demo")
	first, second := c.channelNodes[0], c.lastChannelNode()
	token := first.login(t, apiPaths, w)
	ways := []struct {
		name string
		ask  subscription
	}{
		{"an id", subscription{paths: apiPaths, token: token}},
		{"an id in a header", subscription{paths: wsPaths, token: token, sinceInHeader: true}},
		{"a cursor", subscription{paths: apiPaths, token: token, cursor: true}},
		{"an event stream", subscription{paths: wsPaths, token: token, sse: true, sinceInHeader: true}},
		{"an event stream and the query", subscription{paths: apiPaths, token: token, sse: true}},
	}
	before := make([]*subscriber, len(ways))

	for i, way := range ways {
		before[i] = first.subscribe(t, way.ask)
	}

	c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("resume", 0, half), half)
	for i, s := range before {
		s.awaitCount(t, half)
		if s.ask.cursor { // cursors follow the events
			eventually(t, "a cursor", func() error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if !s.cursors || !strings.HasPrefix(s.resumePosition, s.got[half-1].ID) {
					return fmt.Errorf("at %q", s.resumePosition)
				}
				return nil
			})
		}

		if got := numbers(t, s.events()); !slices.Equal(got, sequence(0, half)) {
			t.Errorf("%s: live %v", ways[i].name, got)
		}

		s.close()
	}

	c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("resume", half, whole-1), whole-1-half)
	for i, way := range ways {
		way.ask.since = before[i].position()
		s := second.subscribe(t, way.ask)
		s.awaitCount(t, whole-1-half)
		before[i] = s
	}

	middle := before[0].events()[10].ID
	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("resume", whole-1), 1)
	for i, way := range ways {
		if got := numbers(t, before[i].awaitCount(t, whole-half)); !slices.Equal(got, sequence(half, whole)) {
			t.Errorf("resumed with %s: got %v", way.name, got)
		}
	}

	earliest := second.subscribe(t, subscription{paths: wsPaths, token: token, since: "earliest"})
	if got := numbers(t, earliest.awaitCount(t, whole)); !slices.Equal(got, sequence(0, whole)) {
		t.Errorf("since the earliest: %v", got)
	}

	again := second.subscribe(t, subscription{paths: wsPaths, token: token, since: middle})
	if got := numbers(t, again.awaitCount(t, whole-half-11)); !slices.Equal(got, sequence(half+11, whole)) {
		t.Errorf("since the middle: %v", got)
	}
}

func (c *cluster) testRefusedPlaces(t *testing.T) {
	w := c.createAccountAndUser(t, "places", "demo")
	n := c.lastChannelNode()
	token := n.login(t, apiPaths, w)
	s := n.subscribe(t, subscription{paths: apiPaths, token: token, sse: true})
	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("places", 0), 1)
	s.awaitCount(t, 1)

	id, cursor := s.events()[0].ID, s.position()
	for _, bad := range []struct {
		since  string
		status int
	}{
		{"yesterday", 400}, {"cc_evt_", 400}, {"cc_evt_123", 400}, {id + "x", 400}, {id + ".!", 400},
		{"1795192594866000896", 400},
		{"cc_evt_1000000000000000000", 410}, // before the cluster existed
		{"cc_evt_9222000000000000000", 410}, // in two hundred years
		{id[:len(id)-9] + "000001023", 410}, // of a partition that does not exist or is not readable
	} {
		for _, ask := range []subscription{
			{paths: apiPaths}, {paths: wsPaths, sinceInHeader: true}, {paths: wsPaths, sse: true},
			{paths: apiPaths, sse: true, sinceInHeader: true},
		} {
			ask.token, ask.since = token, bad.since
			n.mustRefuse(t, ask, bad.status)
		}
	}

	for _, good := range []string{id, cursor, "earliest"} {
		n.subscribe(t, subscription{paths: apiPaths, token: token, since: good}).close()
	}

	if a := n.mustCall(t, http.MethodGet, apiPaths.socket, bearer(token), ""); a.status != http.StatusUpgradeRequired {
		t.Errorf("no upgrade: %s", a)
	}
}
