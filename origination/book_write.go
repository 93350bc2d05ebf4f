package origination

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

const (
	mostWritten  = 512 // calls in one transaction
	writeTimeout = 5 * time.Second
	firstPause   = 100 * time.Millisecond
	lastPause    = 2 * time.Second
)

// keepWriting writes what is to be written until ctx ends: whatever came while
// one transaction was being committed is the next one. What could not be
// written stays to be written.
func (b *book) keepWriting(ctx context.Context) {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			b.refuse()
			return
		case <-b.toWrite:
		}
		for {
			batch, jobs := b.takeDirty()
			if len(batch) == 0 && len(jobs) == 0 {
				pause = firstPause
				break
			}
			err := b.writeBatch(ctx, batch, jobs)
			if err == nil {
				pause = firstPause
			} else if !b.wait(ctx, &pause, "storing calls failed, it is tried again", err) {
				break
			}
		}
	}
}

// wait waits before the next try, longer each time until one succeeds.
func (b *book) wait(ctx context.Context, pause *time.Duration, what string, err error) (again bool) {
	if ctx.Err() == nil {
		b.log.WarnContext(ctx, what, "error", err)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(*pause):
	}
	*pause = min(2*(*pause), lastPause)
	return true
}

func (b *book) writeBatch(ctx context.Context, batch []pending, jobs []job) error {
	images := make([]image, len(batch))
	for i := range batch {
		images[i] = batch[i].image
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	all, err := b.rows.store(ctx, images, jobs)
	for _, j := range jobs {
		j.done(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overtaken = b.overtaken || err == nil && !all
	for i := range batch {
		p := &batch[i]
		for _, c := range p.written {
			c <- err
		}
		if err != nil {
			p.whole = p.whole || p.image.whole
			b.write(p.entry)
			continue
		}
		p.stored = len(p.image.History)
		b.announce(p.entry)
		if p.forget && p.image.forget || !p.image.Live {
			b.remove(p.entry)
		}
	}
	return err
}

// remove takes a call out of the book. b.mu is held.
func (b *book) remove(e *entry) {
	delete(b.byID, e.Order.ID)
	if b.byCall[e.Call.ID] == e {
		delete(b.byCall, e.Call.ID)
	}
}

// refuse answers those who wait for a write that will not come.
func (b *book) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	ending := fault.Unavailable(nil, time.Second, "Shutting down")
	for _, j := range b.jobs {
		j.done(ending)
	}
	b.jobs = nil
	for _, e := range b.urgent {
		for _, c := range e.written {
			c <- ending
		}
		e.written = nil
	}
}
