package stats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/internal/retry"
)

// RebuildState is the progress of a Rebuild.
type RebuildState string

// The states of a Rebuild.
const (
	RebuildOpen   RebuildState = "open" // requested or running
	RebuildDone   RebuildState = "done"
	RebuildFailed RebuildState = "failed"
)

// Rebuild is the request to fold one partition of cc.evt again, with its progress.
type Rebuild struct {
	ID            string // of the request, the same for all partitions
	Partition     int
	From          int64 // Unix seconds: rows of intervals that begin then or later are replaced
	State         RebuildState
	Message       string // error of a failed rebuild
	Folded, Total int64  // number of events, approximate
}

// Rebuilds stores the requests, shared by commands and all processors.
type Rebuilds interface {
	// ListOpen returns the rebuilds in the state RebuildOpen.
	ListOpen(ctx context.Context) ([]Rebuild, error)
	// Update stores the progress of a rebuild. It does nothing if the rebuild is not
	// open or another one was requested since.
	Update(ctx context.Context, r Rebuild) error
}

const rebuildPollInterval = time.Second

// rebuildRequests passes requests to the partitions' workers and stores their
// progress, so that no worker waits for the database. It is safe for concurrent use.
type rebuildRequests struct {
	store Rebuilds
	log   *slog.Logger

	mu           sync.Mutex
	openRebuilds map[int]Rebuild // as stored, by partition
	unreported   map[int]Rebuild // progress not stored yet
	wakes        wakeFunctions   // of workers that wait for a request
}

// run reads requests and stores progress until ctx ends.
func (r *rebuildRequests) run(ctx context.Context) {
	for range retry.Rounds(ctx, rebuildPollInterval) {
		err := r.synchronize(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("requests to fold figures again cannot be read", "error", err)
		}
	}
}

// synchronize stores progress, then reads the requests.
func (r *rebuildRequests) synchronize(ctx context.Context) error {
	r.mu.Lock()
	unreported := r.unreported
	r.unreported = map[int]Rebuild{}
	r.mu.Unlock()

	for partition, rebuild := range unreported {
		// Progress first: an ended rebuild must not be listed as open again.
		if err := r.store.Update(ctx, rebuild); err != nil {
			r.mu.Lock()
			for p, rebuild := range unreported {
				_, newer := r.unreported[p]
				if !newer {
					r.unreported[p] = rebuild
				}
			}
			r.mu.Unlock()

			return err
		}

		delete(unreported, partition)
	}

	list, err := r.store.ListOpen(ctx)
	if err != nil {
		return err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.openRebuilds = map[int]Rebuild{}
	for _, rebuild := range list {
		// The list may be of before a rebuild ended whose end is not stored yet: it does not start once more.
		if ended, ok := r.unreported[rebuild.Partition]; !ok || ended.ID != rebuild.ID || ended.State == RebuildOpen {
			r.openRebuilds[rebuild.Partition] = rebuild
			r.wakes.wake(rebuild.Partition)
		}
	}

	return nil
}

// setWake sets the function that is called when there is a request for a partition, at once if
// there is one already; nil: none. r.mu is locked during a call of wake.
func (r *rebuildRequests) setWake(partition int, wake func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, requested := r.openRebuilds[partition]
	r.wakes.set(partition, wake, requested)
}

// requestedRebuild returns the rebuild requested for a partition.
func (r *rebuildRequests) requestedRebuild(partition int) (Rebuild, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rebuild, ok := r.openRebuilds[partition]
	return rebuild, ok
}

// report records the progress of a rebuild.
func (r *rebuildRequests) report(rebuild Rebuild) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unreported == nil {
		r.unreported = map[int]Rebuild{}
	}
	r.unreported[rebuild.Partition] = rebuild
	if rebuild.State != RebuildOpen && r.openRebuilds[rebuild.Partition].ID == rebuild.ID {
		delete(r.openRebuilds, rebuild.Partition)
	}
}
