package freeswitch

import (
	"context"
	"time"

	"trunkline/internal/retry"
	"trunkline/origination"
	"trunkline/telephony/esl"
)

// Follow implements origination.Driver. It returns nil once ctx has ended.
func (d *Driver) Follow(ctx context.Context, open []origination.Open, report func(origination.Progress)) error {
	d.addOpen(open)
	backoff := retry.Backoff{First: d.cfg.ReconnectMin, Max: d.cfg.ReconnectMax}
	for ctx.Err() == nil {
		began := time.Now()
		err := d.session(ctx, report)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > d.cfg.ReconnectMax {
			backoff.Reset()
		}
		wait := backoff.Next()
		d.log.Warn("event socket connection lost", "address", d.cfg.Address, "error", err, "again_in", wait)
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

// Adopt implements origination.Adopter: the switch still has the calls of a process that died. They
// are compared at once; those without channels on the switch end.
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
	defer conn.Close()
	if err := d.subscribe(ctx, conn); err != nil {
		return err
	}
	switchDomain, err := d.survey(ctx, conn)
	if err != nil {
		return err
	}
	d.attach(conn, switchDomain)
	defer d.attach(nil, "")
	return (&follower{Driver: d, conn: conn, report: report}).run(ctx)
}

// subscribe subscribes to the events of our calls, or to all events.
func (d *Driver) subscribe(ctx context.Context, conn *esl.Conn) error {
	if d.cfg.AllEvents {
		return conn.Subscribe(ctx, "plain", "ALL")
	}
	if err := conn.Filter(ctx, "Channel-Presence-Data", "/^"+tagPrefix+"/"); err != nil {
		return err
	}
	if err := conn.Filter(ctx, "Job-Command", "originate"); err != nil {
		return err
	}
	return conn.Subscribe(ctx, "plain", subscribedEvents...)
}

func (d *Driver) attach(conn *esl.Conn, switchDomain string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.switchDomain, d.domains = conn, switchDomain, make(map[string]string)
	d.epoch++
	d.metrics.attached(conn != nil)
}

// follower reads one connection's events.
type follower struct {
	*Driver
	conn   *esl.Conn
	report func(origination.Progress)
	gaps   esl.Sequence
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
			if f.takeEvents() {
				return lookGap, nil
			}
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

// takeEvents applies the events that have arrived, and reports whether some were lost.
func (f *follower) takeEvents() (gap bool) {
	for _, e := range f.conn.Take() {
		if n, ok := e.Sequence(); ok && f.cfg.AllEvents {
			if lost := f.gaps.Note(n); lost > 0 {
				f.metrics.missed.Add(float64(lost))
				gap = true
			}
		}
		f.execute(f.event(e))
	}
	return gap
}

// execute hangs up channels and sends reports. A hang-up that cannot be sent is left to the comparison
// after the next connect.
func (f *follower) execute(o outcome) {
	for _, channel := range o.kill {
		if err := f.conn.Post(killCommand(channel)); err != nil {
			f.log.Debug("hanging up a cancelled call", "error", err)
		}
	}
	for _, p := range o.reports {
		f.metrics.reported(p)
		f.report(p)
	}
}
