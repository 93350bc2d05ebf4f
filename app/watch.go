package app

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	watchEvery   = 5 * time.Second
	watchPatient = 3 * time.Second // with one answer
)

// watch looks at what the node leans on and cannot mend itself: whether its
// backends answer, room on its disk, its certificates, and the clocks. What is
// wrong is said in one line, again while it lasts, and once more when it is
// over; the metrics have it too. Nothing depends on what it finds.
type watch struct {
	parts   []watched
	certs   *certificates // nil without TLS
	pairs   []pair        // shown to backends
	metrics *watchMetrics
	log     *slog.Logger
	began   time.Time
	steps   stepMeter
	faults  map[string]*lastingFault // by what they are about
}

// watched is one thing that may be away.
type watched struct {
	name, mend string
	ask        func(context.Context) error
	clock      func(context.Context) (time.Duration, error) // nil: it has none of its own
	quiet      func() bool                                  // somebody else says that it is away; nil: nobody
}

// lastingFault is a fault that is there.
type lastingFault struct{ began, said time.Time }

func (a *App) newWatch() *watch {
	w := &watch{
		began: time.Now(), certs: a.certs, metrics: newWatchMetrics(a.registry), log: a.log,
		faults: map[string]*lastingFault{},
	}
	for _, p := range pairs(a.settings) {
		if p.key != "tls.cert_file" {
			w.pairs = append(w.pairs, p)
		}
	}
	database := watched{name: "database", mend: "check the server, and database.url", ask: a.db.PingContext}
	if a.db.Postgres() {
		database.clock = func(ctx context.Context) (time.Duration, error) { return databaseSkew(ctx, a.db) }
	}
	redis := watched{name: "redis", mend: "check the server, redis.address, redis.password and redis.tls",
		ask: func(ctx context.Context) error { return a.redis.Ping(ctx).Err() }}
	if a.settings.Redis.Address != "" {
		redis.clock = a.redisSkew
	}
	dir := a.settings.DataDir
	w.parts = []watched{
		database, redis,
		{name: "kafka", mend: "check the cluster, and kafka.brokers", ask: a.cluster.Ping, quiet: func() bool { return a.health.unready() != "" },
			clock: func(context.Context) (time.Duration, error) { return kafkaSkew(a.cluster) }},
		{name: "disk", mend: "make room on the disk of data_dir, it is used again by itself",
			ask: func(context.Context) error { return w.room(dir) }},
	}
	for _, p := range w.parts { // until it has been asked, nothing is known against it
		w.metrics.up.WithLabelValues(p.name).Set(1)
		if p.clock != nil {
			w.metrics.skew.WithLabelValues(p.name).Set(0)
		}
	}
	w.checkCertificates()
	return w
}

func (w *watch) run(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks everything once.
func (w *watch) look(ctx context.Context) {
	for _, p := range w.parts {
		w.lookAt(ctx, p)
		if ctx.Err() != nil {
			return
		}
	}
	if w.certs != nil {
		w.certs.refresh()
	}
	w.checkCertificates()
	w.checkStep(time.Now().Round(0), time.Since(w.began))
}

func (w *watch) lookAt(ctx context.Context, p watched) {
	asking, cancel := context.WithTimeout(ctx, watchPatient)
	defer cancel()
	err := p.ask(asking)
	if ctx.Err() != nil {
		return // told to end
	}
	w.metrics.up.WithLabelValues(p.name).Set(bit(err == nil))
	if p.quiet != nil && p.quiet() {
		return
	}
	if w.note(p.name, err == nil) {
		if p.name == "disk" {
			w.log.Warn("the disk is full: "+p.mend, "error", oneLine(err))
		} else {
			w.log.Warn(p.name+" does not answer: "+hint(err, p.mend), "error", oneLine(err))
		}
	}
	if err != nil || p.clock == nil {
		return
	}
	ahead, err := p.clock(asking)
	if err != nil {
		return // it has just answered: the next time then
	}
	w.metrics.skew.WithLabelValues(p.name).Set(ahead.Seconds())
	if w.note("clock of "+p.name, ahead.Abs() < skewLimit) {
		w.log.Warn("clocks disagree: let time synchronisation run on this machine and on that of "+p.name, "against", p.name, "ahead", ahead)
	}
}

// note keeps whether something is well, and says whether a line about it is due.
func (w *watch) note(what string, well bool) (due bool) {
	now := time.Now()
	f := w.faults[what]
	switch {
	case well && f != nil:
		delete(w.faults, what)
		w.log.Info(what+" is well again", "after", now.Sub(f.began).Round(time.Millisecond))
		return false
	case well:
		return false
	case f == nil:
		f = &lastingFault{began: now}
		w.faults[what] = f
	case now.Sub(f.said) < waitSay:
		return false
	}
	f.said = now
	return true
}

func (w *watch) room(dir string) error {
	r, err := roomIn(dir)
	if err != nil {
		return err
	}
	w.metrics.free.Set(float64(r.free))
	w.metrics.size.Set(float64(r.size))
	if r.low() {
		return errors.New(r.String())
	}
	return nil
}
