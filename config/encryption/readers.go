package encryption

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/sqldb"
)

// readers reads for everybody who asks at the same time together: one statement
// for their configurations, and one for their lines in the audit log. Statements
// and commits of each their own would be most of what a read costs.
type readers struct {
	// read finds the configurations of the accounts as they are now.
	read func(ctx context.Context, accountIDs []string) (map[string]loaded, error)
	// log makes the entries durable.
	log func(context.Context, []entry) error

	mu      sync.Mutex
	waiting []reader
	reading bool // a goroutine reads, and continues until no caller waits
}

type reader struct {
	accountID, who string
	done           chan loaded // takes one
}

// loaded is an account's configuration, or why it cannot be had.
type loaded struct {
	*state
	err error
}

const (
	readersAtOnce = 64
	readTimeout   = 30 * time.Second
)

// get returns the account's configuration as it is after get was called, once
// the audit log says that who has read it.
func (r *readers) get(ctx context.Context, who, accountID string) (*state, error) {
	one := reader{accountID, who, make(chan loaded, 1)}
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	if !r.reading {
		r.reading = true
		go r.run()
	}
	r.mu.Unlock()
	select {
	case got := <-one.done:
		return got.state, got.err
	case <-ctx.Done():
		return nil, sqldb.Wrap(ctx.Err(), "reading the encryption configuration")
	}
}

func (r *readers) run() {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), readersAtOnce)
		turn := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		r.reading = n > 0
		r.mu.Unlock()
		if n == 0 {
			return
		}
		r.serve(turn)
	}
}

func (r *readers) serve(turn []reader) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	answers, err := r.answers(ctx, turn)
	for _, one := range turn {
		if err != nil {
			one.done <- loaded{err: err}
			continue
		}
		one.done <- answers[one.accountID]
	}
}

// answers has one for every account, and a line in the audit log for everybody
// who gets a configuration.
func (r *readers) answers(ctx context.Context, turn []reader) (map[string]loaded, error) {
	ids := make([]string, len(turn))
	for i, one := range turn {
		ids[i] = one.accountID
	}
	answers, err := r.read(ctx, ids)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(turn))
	for _, one := range turn {
		if got := answers[one.accountID]; got.err == nil {
			entries = append(entries, entry{one.accountID, one.who, actionRead, got.version(), got.revision})
		}
	}
	if len(entries) == 0 {
		return answers, nil
	}
	return answers, r.log(ctx, entries)
}
