package pbx

import (
	"context"
	"sync"

	"trunkline/origination"
)

// progressQueue is the queue of progress reports for Follow. Each call has few, and the number of calls is bounded.
type progressQueue struct {
	mu      sync.Mutex
	waiting []origination.Progress
	added   chan struct{}
}

func newProgressQueue() *progressQueue { return &progressQueue{added: make(chan struct{}, 1)} }

func (p *progressQueue) add(step origination.Progress) {
	p.mu.Lock()
	p.waiting = append(p.waiting, step)
	p.mu.Unlock()
	select {
	case p.added <- struct{}{}:
	default: // Follow has been signalled already
	}
}

func (p *progressQueue) run(ctx context.Context, report func(origination.Progress)) {
	for {
		p.flush(report)
		select {
		case <-p.added:
		case <-ctx.Done():
			return
		}
	}
}

func (p *progressQueue) flush(report func(origination.Progress)) {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, step := range waiting {
		report(step)
	}
}
