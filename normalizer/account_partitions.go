package normalizer

import (
	"context"
	"maps"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// accountLog is the part of cc.accounts that this process has read, shared by the
// workers of all partitions.
type accountLog struct {
	mu         sync.Mutex
	next       int64                                     // offset to read next
	partitions map[int]map[string]event.AccountPartition // by partition of cc.evt and account
}

// readAccountPartitions reads cc.accounts up to its end and returns the records of one partition.
func (l *accountLog) readAccountPartitions(ctx context.Context, log kafka.Log,
	partition int) (map[string]event.AccountPartition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	add := func(r *kafka.Record) {
		p, err := event.ParseAccountPartition(r.Key, r.Value)
		if err != nil { // written by another program, or damaged: write the account again
			return
		}

		if l.partitions[p.Partition] == nil {
			l.partitions[p.Partition] = map[string]event.AccountPartition{}
		}

		l.partitions[p.Partition][p.AccountID] = p
	}

	for {
		if l.next == 0 {
			l.partitions = map[int]map[string]event.AccountPartition{}
		}

		end, err := log.ScanCompacted(ctx, event.TopicAccounts, 0, l.next, func() {}, add)
		if err != nil {
			return nil, err
		}

		if end >= l.next {
			l.next = end
			return maps.Clone(l.partitions[partition]), nil
		}

		l.next = 0 // the topic was truncated or recreated
	}
}

// accountPartitions names accounts on cc.accounts before their first event in one partition
// of cc.evt is written. Its methods do nothing on nil.
type accountPartitions struct {
	worker        *partitionWorker
	knownAccounts map[string]struct{} // accounts named in cc.accounts for the partition
}

// loadAccountPartitions loads the accounts of the partition. If cc.accounts has no completion
// of the partition, loadAccountPartitions writes one for the current end, and names the
// accounts of the state for the events before it.
func (w *partitionWorker) loadAccountPartitions(ctx context.Context) error {
	p := &accountPartitions{worker: w, knownAccounts: map[string]struct{}{}}
	hasCompletion := false
	err := w.retry(ctx, "reading the partitions of accounts", func() error {
		found, err := w.accounts.readAccountPartitions(ctx, w.deps.LogReader, w.Partition)
		for account := range found {
			p.knownAccounts[account] = struct{}{}
		}
		_, hasCompletion = found[""]
		return err
	})
	if err != nil {
		return err
	}

	var missing []string
	for _, e := range w.stateKeeper.partitionState.All() {
		missing = append(missing, e.AccountID)
	}

	if err := p.writeMissing(ctx, missing); err != nil {
		return err
	}

	if !hasCompletion { // last, after all accounts before it are durable
		if err := p.writeMissing(ctx, []string{""}); err != nil {
			return err
		}
	}

	w.accountPartitions = p
	return nil
}

// ensureNamed names the accounts of events on cc.accounts. Produce the events only after it
// has returned.
func (p *accountPartitions) ensureNamed(ctx context.Context, events []kafka.Record) error {
	if p == nil {
		return nil
	}

	var missing []string
	for i := range events {
		if _, ok := p.knownAccounts[string(events[i].Key)]; !ok {
			missing = append(missing, string(events[i].Key))
		}
	}

	return p.writeMissing(ctx, missing)
}

// writeMissing writes records of unnamed accounts, at the current end of the partition.
func (p *accountPartitions) writeMissing(ctx context.Context, accounts []string) error {
	var records []kafka.Record
	for _, account := range accounts {
		if _, ok := p.knownAccounts[account]; ok {
			continue
		}

		p.knownAccounts[account] = struct{}{}
		record := event.AccountPartition{AccountID: account, Partition: p.worker.Partition,
			Offset: p.worker.stateKeeper.position.Offset}
		records = append(records,
			kafka.Record{Topic: event.TopicAccounts, Key: []byte(record.Key()), Value: record.Value()})
	}

	return p.worker.produceWithRetry(ctx, records) // an error ends the worker, and with it knownAccounts
}
