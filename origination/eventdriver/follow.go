package eventdriver

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/internal/retry"
	"trunkline/origination"
)

var errPanicked = errors.New("an event or channel could not be handled")

// Follow implements origination.Driver. It returns nil once ctx has ended.
func (d *Driver[C, K]) Follow(ctx context.Context, open []origination.OpenCall,
	report func(origination.Progress)) error {
	d.addOpen(open)
	backoff := retry.Backoff{First: d.cfg.ReconnectMin, Max: d.cfg.ReconnectMax}
	for ctx.Err() == nil {
		began := time.Now()
		var err error
		if d.panics.Do(d.sessionPanicPlace(), func() { err = d.followConnection(ctx, report) }) {
			err = errPanicked
		}

		if ctx.Err() != nil {
			return nil
		}

		// session has detached without a reason; orders are refused with this one.
		d.detach(err)
		// A platform that ends connections at once must not shorten the pauses.
		if time.Since(began) > d.cfg.ReconnectMax {
			backoff.Reset()
		}

		wait := backoff.Next()
		_, advice := d.platform.Explain(err)
		d.log.Warn(d.cfg.Connection+" connection lost", "address", d.cfg.Address, "error", err, "advice", advice,
			"again_in", wait)
		retry.Sleep(ctx, wait)
	}

	return nil
}

// addOpen adds the calls of an earlier process.
func (d *Driver[C, K]) addOpen(open []origination.OpenCall) {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, o := range open {
		if o.CallID == "" || o.State == origination.Ended {
			continue
		}

		_, known := d.calls[d.platform.Key(o.CallID)]
		if !known {
			d.addCall(Call{ID: o.CallID, State: o.State})
		}
	}
}

// Adopt implements origination.Adopter: the platform still has the calls of a process that died. They
// are compared at once; those without a channel end.
func (d *Driver[C, K]) Adopt(_ context.Context, open []origination.OpenCall) (rest []origination.OpenCall) {
	d.addOpen(open)
	select {
	case d.adopted <- struct{}{}:
	default: // a comparison is pending
	}
	return nil
}

// followConnection runs one connection from connecting to its end.
func (d *Driver[C, K]) followConnection(ctx context.Context, report func(origination.Progress)) error {
	conn, err := d.platform.Connect(ctx)
	if err != nil {
		return err
	}

	f := &follower[C, K]{Driver: d, conn: conn, report: report}
	// At the end the connection is closed first: that ends the hang-ups that are waited for.
	defer f.hangUps.Wait()
	defer conn.Close()

	d.attach(conn)
	defer d.detach(nil)

	return f.run(ctx)
}

func (d *Driver[C, K]) attach(conn K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.connected, d.disconnectErr = conn, true, nil
	d.epoch++
	d.metrics.connected.Set(1)
}

// detach ends the use of the connection. An order that waits for its answer fails: its call is hung
// up, also by a connection that is made before Originate returns.
func (d *Driver[C, K]) detach(reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, tracked := range d.calls {
		c := tracked.common()
		if c.placing {
			c.unwanted = true
		}
	}

	var none K
	d.conn, d.connected, d.disconnectErr = none, false, reason
	d.metrics.connected.Set(0)
}

// follower reads one connection's events.
type follower[C TrackedCall, K Conn] struct {
	*Driver[C, K]
	conn    K
	report  func(origination.Progress)
	hangUps sync.WaitGroup
}

func (f *follower[C, K]) run(ctx context.Context) error {
	for reason := ReasonConnected; ; {
		soon, err := f.compare(ctx, reason)
		if err != nil {
			return err
		}

		every := f.cfg.CompareEvery
		if soon {
			every = min(every, f.cfg.GoneAfter)
		}

		next := time.NewTimer(every)
		reason, err = f.applyEvents(ctx, next.C)
		next.Stop()
		if err != nil {
			return err
		}
	}
}

// applyEvents applies events until the next comparison, and returns its reason.
func (f *follower[C, K]) applyEvents(ctx context.Context, next <-chan time.Time) (string, error) {
	for {
		select {
		case <-f.conn.Arrived():
			f.applyArrivedEvents()
		case <-f.conn.Done():
			f.applyArrivedEvents() // events that arrived before the end
			return "", f.conn.Err()
		case <-next:
			return ReasonPeriodic, nil
		case <-f.adopted:
			return ReasonAdopted, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// applyArrivedEvents applies the events that the connection has queued.
func (f *follower[C, K]) applyArrivedEvents() {
	for _, e := range f.platform.Events(f.conn) {
		f.execute(f.apply(e))
	}
}

// execute hangs up channels and sends reports. A hang-up that fails is left to the next comparison.
func (f *follower[C, K]) execute(o effects) {
	for _, channel := range o.hangUp {
		f.hangUps.Go(func() {
			defer f.panics.Recover(f.hangUpPanicPlace())
			if err := f.platform.HangUp(context.Background(), f.conn, channel); err != nil { // ends with the connection
				f.log.Debug("hanging up a cancelled call", "error", err)
			}
		})
	}

	for _, p := range o.reports {
		f.metrics.progress.WithLabelValues(string(p.State)).Inc()
		f.report(p)
	}
}
