package encryption

import (
	"context"
	"sync"
	"time"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// readers combines concurrent reads into one statement for all their accounts: with a
// statement for each, the statements would be most of the cost of a read.
type readers struct {
	// read returns the current configurations of the accounts.
	read func(ctx context.Context, accountIDs []string) (map[string]loaded, error)
	// record makes entries of the audit log durable.
	record func(context.Context, ...audit.Entry) error

	mu      sync.Mutex
	waiting []reader
	reading bool // a goroutine reads, and continues until no caller waits
}

type reader struct {
	entry audit.Entry // has the account to read
	done  chan loaded // of capacity 1
}

// loaded is an account's configuration, or the error of reading it.
type loaded struct {
	*state
	err error
}

const (
	readersAtOnce = 64
	readTimeout   = 30 * time.Second
)

// get returns the configuration of the entry's account, read after the call of get, once
// the entry, completed with the key's version, is in the audit log.
func (r *readers) get(ctx context.Context, entry audit.Entry) (*state, error) {
	one := reader{entry, make(chan loaded, 1)}
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
		one.done <- answers[one.entry.AccountID]
	}
}

// answers returns a result for every account, and writes the audit entries of the
// callers that get a configuration.
func (r *readers) answers(ctx context.Context, turn []reader) (map[string]loaded, error) {
	ids := make([]string, len(turn))
	for i, one := range turn {
		ids[i] = one.entry.AccountID
	}
	answers, err := r.read(ctx, ids)
	if err != nil {
		return nil, err
	}
	entries := make([]audit.Entry, 0, len(turn))
	for _, one := range turn {
		if got := answers[one.entry.AccountID]; got.err == nil {
			one.entry.Target = got.auditTarget()
			entries = append(entries, one.entry)
		}
	}
	if len(entries) == 0 {
		return answers, nil
	}
	return answers, r.record(ctx, entries...)
}
