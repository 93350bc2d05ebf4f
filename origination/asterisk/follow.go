package asterisk

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/internal/retry"
	"trunkline/origination"
	"trunkline/telephony/ami"
)

// Places of recovered panics.
const (
	placeSession = "asterisk session"
	placeHangUp  = "asterisk hang-up"
)

// filters select the events of our calls by their Linkedid and ActionID.
var filters = []string{"Linkedid: [A-Za-z0-9._-]+" + ownerSuffix, "ActionID: [A-Za-z0-9._-]+" + originateSuffix}

var errPanicked = errors.New("an event or channel could not be handled")

// Follow implements origination.Driver. It returns nil once ctx has ended.
func (d *Driver) Follow(ctx context.Context, open []origination.Open, report func(origination.Progress)) error {
	d.addOpen(open)
	backoff := retry.Backoff{First: d.cfg.ReconnectMin, Max: d.cfg.ReconnectMax}
	for ctx.Err() == nil {
		began := time.Now()
		var err error
		if d.panics.Do(placeSession, func() { err = d.session(ctx, report) }) {
			err = errPanicked
		}
		if ctx.Err() != nil {
			return nil
		}
		d.detach(err)
		if time.Since(began) > d.cfg.ReconnectMax {
			backoff.Reset()
		}
		wait := backoff.Next()
		d.log.Warn("manager interface connection lost", "address", d.cfg.Address, "error", err, "advice", advice(err), "again_in", wait)
		retry.Sleep(ctx, wait)
	}
	return nil
}

// addOpen adds the calls of an earlier process.
func (d *Driver) addOpen(open []origination.Open) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range open {
		if o.CallID == "" || o.State == origination.Ended || d.calls[o.CallID] != nil {
			continue
		}
		d.remember(newCall(o.CallID, o.State, 0))
	}
}

// Adopt implements origination.Adopter: Asterisk still has the calls of a process that died. They are
// compared at once; those without a channel end.
func (d *Driver) Adopt(_ context.Context, open []origination.Open) (rest []origination.Open) {
	d.addOpen(open)
	select {
	case d.adopted <- struct{}{}:
	default: // a comparison is pending
	}
	return nil
}

// session runs one connection from connecting to its end.
func (d *Driver) session(ctx context.Context, report func(origination.Progress)) error {
	conn, err := d.client.Dial(ctx)
	if err != nil {
		return err
	}
	f := &follower{Driver: d, conn: conn, report: report}
	defer f.hangUps.Wait()
	defer conn.Close()
	if err := f.filter(ctx); err != nil {
		return err
	}
	d.attach(conn)
	defer d.detach(nil)
	return f.run(ctx)
}

func (d *Driver) attach(conn *ami.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.away = conn, nil
	d.epoch++
	d.metrics.connected.Set(1)
}

func (d *Driver) detach(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.away = nil, why
	d.metrics.connected.Set(0)
}

// follower reads one connection's events.
type follower struct {
	*Driver
	conn    *ami.Conn
	report  func(origination.Progress)
	hangUps sync.WaitGroup
}

// filter restricts the events to those of our calls, where the user may do so.
func (f *follower) filter(ctx context.Context) error {
	for _, text := range filters {
		_, err := f.conn.Do(ctx, ami.Action{Name: "Filter", Fields: []ami.Field{{Key: "Operation", Value: "Add"}, {Key: "Filter", Value: text}}})
		var refusal *ami.Refusal
		if errors.As(err, &refusal) {
			f.log.InfoContext(ctx, "manager interface connected without a filter: the events of all calls are read", "address", f.cfg.Address, "error", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	f.log.InfoContext(ctx, "manager interface connected", "address", f.cfg.Address)
	return nil
}

func (f *follower) run(ctx context.Context) error {
	for why := lookConnected; ; {
		soon, err := f.compare(ctx, why)
		if err != nil {
			return err
		}
		every := f.cfg.AuditEvery
		if soon {
			every = min(every, f.cfg.GoneAfter)
		}
		next := time.NewTimer(every)
		why, err = f.events(ctx, next.C)
		next.Stop()
		if err != nil {
			return err
		}
	}
}

// events applies events until the next comparison, and returns its reason.
func (f *follower) events(ctx context.Context, next <-chan time.Time) (string, error) {
	for {
		select {
		case <-f.conn.Arrived():
			f.takeEvents()
		case <-f.conn.Done():
			f.takeEvents() // events that arrived before the end
			return "", f.conn.Err()
		case <-next:
			return lookPeriodic, nil
		case <-f.adopted:
			return lookAdopted, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// takeEvents applies the events that have arrived.
func (f *follower) takeEvents() {
	for _, e := range f.conn.Take() {
		f.execute(f.event(e))
	}
}

// execute hangs up channels and sends reports. A hang-up that fails is left to the next comparison.
func (f *follower) execute(o outcome) {
	if o.kill != "" {
		f.hangUps.Go(func() {
			defer f.panics.Recover(placeHangUp)
			if _, err := f.conn.Do(context.Background(), hangUp(o.kill)); err != nil { // ends with the connection
				f.log.Debug("hanging up a cancelled call", "error", err)
			}
		})
	}
	for _, p := range o.reports {
		f.metrics.reported(p)
		f.report(p)
	}
}
