package fanout

import (
	"context"
	"sync"
	"time"
)

// sharedPresence is what Redis holds, for nodes of one test.
type sharedPresence struct {
	mu    sync.Mutex
	nodes map[string]map[string]Client
	lag   map[time.Time]time.Duration
	down  bool

	published int // calls of Publish
}

func newPresence() *sharedPresence {
	return &sharedPresence{nodes: make(map[string]map[string]Client), lag: make(map[time.Time]time.Duration)}
}

func (p *sharedPresence) ReportLag(_ context.Context, _ string, hour time.Time, lag time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errDown
	}
	p.lag[hour] = max(p.lag[hour], lag)
	return nil
}

func (p *sharedPresence) Lag(_ context.Context, from, to time.Time) (lag time.Duration, known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.down {
		return 0, false, errDown
	}

	from = from.Truncate(time.Hour)
	_, known = p.lag[from]
	for hour, of := range p.lag {
		if !hour.Before(from) && !hour.After(to) {
			lag = max(lag, of)
		}
	}

	return lag, known, nil
}

func (p *sharedPresence) Publish(_ context.Context, node string, changed []Client, left []string,
	whole bool) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.published++
	if p.down {
		return 0, errDown
	}
	if p.nodes[node] == nil || whole {
		p.nodes[node] = make(map[string]Client)
	}

	for _, c := range changed {
		p.nodes[node][c.ID] = c
	}

	for _, id := range left {
		delete(p.nodes[node], id)
	}

	return len(p.nodes[node]), nil
}

func (p *sharedPresence) Others(ctx context.Context, node string) (nodes, connections int, err error) {
	clients, err := p.Clients(ctx, node)
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.nodes {
		if name != node {
			nodes++
		}
	}
	return nodes, len(clients), err
}

func (p *sharedPresence) Clients(_ context.Context, node string) ([]Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.down {
		return nil, errDown
	}

	var all []Client
	for name, clients := range p.nodes {
		for _, c := range clients {
			if name != node {
				all = append(all, c)
			}
		}
	}

	return all, nil
}

func (p *sharedPresence) Leave(_ context.Context, node string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.nodes, node)
	return nil
}

// reportAllHours makes the delivery lag of all hours from a time to now known.
func (p *sharedPresence) reportAllHours(from time.Time) {
	for hour := from.Truncate(time.Hour); !hour.After(time.Now()); hour = hour.Add(time.Hour) {
		_ = p.ReportLag(context.Background(), "x", hour, time.Millisecond)
	}
}
