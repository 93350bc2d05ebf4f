package fanout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/identity"
)

func TestPastConnectionsAreBounded(t *testing.T) {
	var r pastConnections
	add := func(i int, filter identity.Filter) {
		s := connectionHistory{}
		s.ensureEnd().endedAt = time.Unix(int64(i), 0)
		r.add(&pastConnection{connectionHistory: s, id: fmt.Sprint(i), principal: &identity.Principal{Filter: filter}})
	}

	for i := range maxPastConnections + 3 {
		add(i, identity.Filter{})
	}

	if all, since := r.list(); len(all) != maxPastConnections || all[0].id != "3" || since != time.Unix(2, 0) {
		t.Errorf("%d connections from %s, complete since %v", len(all), all[0].id, since)
	}

	large := identity.Filter{CallIDs: slices.Repeat([]string{strings.Repeat("c", 256)}, 1000)}
	for i := range 100 {
		add(maxPastConnections+3+i, large)
	}

	bytes := 0
	all, _ := r.list()
	for _, p := range all {
		bytes += p.bytes()
	}

	if bytes > maxPastConnectionBytes || bytes != r.bytes || all[len(all)-1].id != fmt.Sprint(maxPastConnections+102) {
		t.Errorf("%d connections with %d bytes, counted %d", len(all), bytes, r.bytes)
	}
}

// Connections are not added in the order in which they ended.
func TestPastConnectionsAreCompleteSinceTheLatestEndOfThoseDropped(t *testing.T) {
	var r pastConnections
	for i := range maxPastConnections + 2 {
		s := connectionHistory{}
		s.ensureEnd().endedAt = time.Unix(5000, 0)
		if i == 1 {
			s.end.endedAt = time.Unix(4000, 0)
		}
		r.add(&pastConnection{connectionHistory: s, principal: &identity.Principal{}})
	}

	if _, since := r.list(); since != time.Unix(5000, 0) {
		t.Errorf("complete since %v", since)
	}

	// One that ended before the node's start of the list does not make it complete from there.
	r = pastConnections{since: time.Unix(9000, 0)}
	for range maxPastConnections + 1 {
		s := connectionHistory{}
		s.ensureEnd().endedAt = time.Unix(8000, 0)
		r.add(&pastConnection{connectionHistory: s, principal: &identity.Principal{}})
	}

	if _, since := r.list(); since != time.Unix(9000, 0) {
		t.Errorf("complete since %v, before it began", since)
	}
}
