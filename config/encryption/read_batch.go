package encryption

import (
	"context"
	"time"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// pendingRead is a read that waits for its round: one statement reads for all of a round, because the
// statement is most of the cost of a read.
type pendingRead struct {
	entry  audit.Entry // has the account to read
	result readResult
}

// readResult is an account's configuration, or the error of reading it.
type readResult struct {
	*accountConfig
	err error
}

const (
	maxReadBatch = 64
	readTimeout  = 30 * time.Second
)

// read returns the configuration of the entry's account, not older than the call. It
// returns after the entry, with the key's version as target, is in the audit log.
func (s *Service) read(ctx context.Context, entry audit.Entry) (*accountConfig, error) {
	pending := &pendingRead{entry: entry}
	if err := s.reads.Do(ctx, pending); err != nil {
		return nil, sqldb.Wrap(err, "reading the encryption configuration")
	}
	return pending.result.accountConfig, pending.result.err
}

// readAll sets the results of a round, and writes the audit entries of the reads that succeeded.
func (s *Service) readAll(round []*pendingRead) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()

	ids := make([]string, len(round))
	for i, pending := range round {
		ids[i] = pending.entry.AccountID
	}

	results, err := s.loadAll(ctx, s.db, ids)
	if err != nil {
		return err
	}

	entries := make([]audit.Entry, 0, len(round))
	for _, pending := range round {
		pending.result = results[pending.entry.AccountID]
		if pending.result.err == nil {
			pending.entry.Target = pending.result.auditTarget()
			entries = append(entries, pending.entry)
		}
	}

	if len(entries) == 0 {
		return nil
	}

	return s.audit.Record(ctx, entries...)
}
