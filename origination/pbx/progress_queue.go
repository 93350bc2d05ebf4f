package pbx

import (
	"context"
	"sync"

	"trunkline/origination"
)

// progress is the queue of progress reports for Follow. Each call has few, and the number of calls is bounded.
type progress struct {
	mu      sync.Mutex
	waiting []origination.Progress
	added   chan struct{}
}

func newProgress() *progress { return &progress{added: make(chan struct{}, 1)} }

func (p *progress) add(step origination.Progress) {
	p.mu.Lock()
	p.waiting = append(p.waiting, step)
	p.mu.Unlock()
	select {
	case p.added <- struct{}{}:
	default: // Follow has been signalled already
	}
}

func (p *progress) reportProgress(ctx context.Context, report func(origination.Progress)) {
	for {
		p.flush(report)
		select {
		case <-p.added:
		case <-ctx.Done():
			return
		}
	}
}

func (p *progress) flush(report func(origination.Progress)) {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, step := range waiting {
		report(step)
	}
}
