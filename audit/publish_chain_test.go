package audit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// fakeTopic collects published entries, and fails on request.
type fakeTopic struct {
	mu      sync.Mutex
	fail    error
	entries []ChainEntry
}

func (p *fakeTopic) Publish(_ context.Context, entries []ChainEntry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return p.fail
	}
	p.entries = append(p.entries, entries...)
	return nil
}

func (p *fakeTopic) seqs() (all []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		all = append(all, e.Seq)
	}
	return all
}

func TestTheTopicHasTheChain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		p := &fakeTopic{fail: errors.New("Kafka is away")}
		onTopic := func(_ *Settings, d *Deps) { d.Publisher = p }

		nodes := []*node{newNode(t, at, onTopic), newNode(t, at, onTopic)}
		for _, n := range nodes {
			n.run(t)
		}

		check(t, nodes[0].Record(t.Context(), nodes[0].loginEntry("a"), nodes[0].loginEntry("b")))
		waitFor(t, "the chain grows while Kafka is away", func() bool {
			h, err := nodes[0].readHead(t.Context())
			return err == nil && h.seq == 2
		})

		p.mu.Lock()
		p.fail = nil
		p.mu.Unlock()

		check(t, nodes[1].Record(t.Context(), nodes[1].loginEntry("c")))
		waitFor(t, "all on the topic", func() bool { return slices.Equal(p.seqs(), []int64{1, 2, 3}) })
	})
}
