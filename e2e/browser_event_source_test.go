package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// TestEventSource checks that a browser's own EventSource reconnects by itself with its
// Last-Event-ID.
func TestEventSource(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	token := n.login(t, apiPaths, user("bob"))
	b := n.newBoard(t)
	b.mustEval(t, `new Promise((open) => {
		globalThis.got = [], globalThis.opened = 0;
		const events = new EventSource(`+jsString(apiPaths.stream+"?token="+token)+`);
		events.onopen = () => { opened++; open(); };
		events.onmessage = ({ data }) => got.push(JSON.parse(data).id);
	})`, nil)
	reference := keepSubscribed(t, subscription{paths: apiPaths, token: token, cursor: true, since: "earliest"}, n)

	const each, cuts = 50, 3
	for i := range cuts + 1 {
		c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("demo", i*each, (i+1)*each), each)
		if i == cuts {
			break
		}

		b.awaitTrue(t, "some events", fmt.Sprintf("got.length > %d", i*each))
		b.cable.setState(resetting)
		c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson",
			batch("demo", 1000+i*each, 1000+(i+1)*each), each)
		b.cable.setState(passing)
		b.awaitTrue(t, "EventSource to be back", fmt.Sprintf("opened > %d", i+1))
	}

	want := ids(reference.awaitCount(t, (2*cuts+1)*each)) // its connection never breaks
	b.awaitTrue(t, "all events", fmt.Sprintf("got.length >= %d", len(want)))
	var got []string
	b.mustEval(t, "got", &got)

	if !slices.Equal(got, want) {
		t.Errorf("EventSource got %d events, the reference %d\nmissing %v\ntoo many %v", len(got), len(want),
			subtract(want, got), subtract(got, want))
	}
}
