package fanout

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/identity"
	"trunkline/internal/retry"
	"trunkline/internal/tracing"
)

// Directory authenticates tokens and holds the account tree and permissions.
type Directory interface {
	Authenticate(ctx context.Context, token string, accept ...identity.Audience) (*identity.Principal, error)
	// Valid returns an error when a principal's token is no longer valid. It
	// does no I/O.
	Valid(p *identity.Principal) error
	Tree() *identity.Tree
	// Changed returns a channel that is closed at the next change of the tree
	// or of permissions.
	Changed() <-chan struct{}
	// Lookup loads an account that Tree does not have yet.
	Lookup(ctx context.Context, accountID string) (identity.Account, bool, error)
}

// Deps holds the dependencies of a Fanout.
type Deps struct {
	Log       Log
	Directory Directory
	Presence  Presence
	Limits    Limits       // may be nil when the settings limit nothing
	Figures   QueueFigures // nil: snapshots have none
	Metrics   prometheus.Registerer
	Logger    *slog.Logger
	Tracer    *tracing.Tracer // nil: tracing is off
}

// Fanout is the events channel of one node.
type Fanout struct {
	cfg       Config
	log       Log
	directory Directory
	presence  Presence
	limits    Limits
	metrics   *metrics
	logger    *slog.Logger

	index               *index
	history             *history
	lookups             *offsetLookup
	seen                seenAccounts
	currentLog          atomic.Pointer[logID]
	gapCount            atomic.Int64 // gaps found in the log by the live streams
	writers             *conn.Writers[*subscriber]
	follower            *follower
	members             *members
	tokens              tokens
	traces              traces
	states              *states
	today               today
	draining            atomic.Bool
	handshakes          atomic.Int64   // handshakes in progress
	presenceUnavailable atomic.Bool    // the last presence update failed
	sweeps              uint64         // used by sweepOnce only
	otherNodes          atomic.Int64   // refreshed with otherConnections
	otherConnections    atomic.Int64   // connections of the other nodes, refreshed every presenceInterval
	worstLag            hourlyLag      // used by publishPresence only
	tasks               sync.WaitGroup // readers, socket waiters and replays; see startTask
	endMu               sync.RWMutex   // guards ended: startTask takes it for reading
	ended               bool

	runContext context.Context // canceled when Run returns; created by New
	cancelRun  context.CancelFunc
}

// New validates the settings and creates a Fanout. It starts no goroutine.
func New(cfg Config, deps Deps) (*Fanout, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Fanout{
		cfg: cfg, log: deps.Log, directory: deps.Directory, presence: deps.Presence, limits: deps.Limits,
		metrics: newMetrics(deps.Metrics), logger: deps.Logger,
		index: newIndex(), members: newMembers(), traces: traces{tracer: deps.Tracer},
	}
	f.runContext, f.cancelRun = context.WithCancel(context.Background())
	f.history = newHistory(f.log, cfg.HistoryBytes, cfg.Compression, f.metrics, f.ensureAccountsLoaded)
	f.lookups = &offsetLookup{log: f.log}
	f.writers = conn.NewWriters(runtime.GOMAXPROCS(0), cfg.GatherWindow, f.flushed)
	f.follower = newFollower(f)
	f.states = &states{f: f}
	f.today = today{source: deps.Figures, accounts: map[string]accountToday{}}
	return f, nil
}

// Run serves until ctx ends. Call Drain first to disconnect subscribers with a
// close frame.
func (f *Fanout) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for range f.writers.Count() {
		running.Go(func() { f.writers.Run(f.runContext) })
	}
	for _, work := range []func(context.Context){f.sweep, f.followPermissions, f.publishPresence, f.rebalance, f.follower.grow} {
		running.Go(func() { work(f.runContext) })
	}
	<-ctx.Done()
	f.draining.Store(true)
	f.follower.close()
	f.endMu.Lock()
	f.ended = true
	f.endMu.Unlock()
	f.cancelRun()
	for _, s := range append(f.members.all(), f.members.listDisconnecting()...) {
		f.remove(s, DisconnectBroken)
	}
	running.Wait()
	f.tasks.Wait()
	f.history.close()
	return nil
}

// register adds the subscriber to the members and to the index: from then on
// events, permission changes and Drain reach it. Its frames stay in the queue
// until startDelivery.
func (f *Fanout) register(a *admission) {
	s := a.subscriber
	s.state = scheduled
	s.replaying.Store(a.starts != nil)
	f.members.add(s)
	f.metrics.connections.Inc()
	f.addToIndex(a)
	// Permissions may have changed since admit. After members.add, Drain and
	// applyPermissions include s.
	for tree := f.directory.Tree(); ; {
		f.applyPermission(s, tree)
		now := f.directory.Tree()
		if now == tree {
			break
		}
		tree = now // applyPermissions may have applied it before the older one
	}
	if a.gapCount != f.gapCount.Load() {
		f.disconnect(s, DisconnectEventsLost)
	}
	if f.draining.Load() {
		f.disconnect(s, DisconnectRestart)
	}
}

func (f *Fanout) addToIndex(a *admission) {
	s := a.subscriber
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	if s.tracker != nil {
		s.tracker.logID = f.logID()
		for _, st := range f.follower.list() {
			at := st.live
			switch {
			case st.partition < len(a.starts):
				at = a.starts[st.partition].position
			case a.starts != nil: // added since
				at = startAt(0)
			}
			s.tracker.advance(st.partition, at)
		}
	}
	f.index.insert(s)
}

// startDelivery schedules the first write and starts the replay, if there is
// one.
func (f *Fanout) startDelivery(a *admission) {
	f.scheduleNow(f.runContext, a.subscriber)
	if a.starts != nil {
		r := f.newReplay(a.subscriber, a.starts, a.earliest)
		f.startTask(func() { f.catchUp(f.runContext, r) })
	}
}

// startTask runs work in a goroutine that Run waits for. It returns false,
// without starting it, when Run is ending.
func (f *Fanout) startTask(work func()) bool {
	f.endMu.RLock()
	defer f.endMu.RUnlock()
	if f.ended {
		return false
	}
	f.tasks.Go(work)
	return true
}

// disconnect closes a subscriber with a close frame and removes it from the
// connection counts.
func (f *Fanout) disconnect(s *subscriber, d conn.Disconnect) {
	first, wake := s.close(d, time.Now().Add(closeWait))
	if !first {
		return
	}
	f.unregister(s)
	if wake {
		f.scheduleNow(f.runContext, s)
	}
}

// scheduleNow hands s to a writer.
func (f *Fanout) scheduleNow(ctx context.Context, s *subscriber) {
	f.writers.ScheduleNow(ctx, []*subscriber{s})
}

// remove deletes a subscriber whose connection has ended. It counts the reason
// of an earlier disconnect, else d.
func (f *Fanout) remove(s *subscriber, d conn.Disconnect) {
	f.unregister(s)
	if !s.markClosed() {
		return
	}
	s.mu.Lock()
	if s.closing != nil {
		d = s.closing.Disconnect
	}
	s.mu.Unlock()
	f.metrics.closed.WithLabelValues(codeLabel(d.Code)).Inc()
	s.transport.close()
	f.members.delete(s)
}

func (f *Fanout) unregister(s *subscriber) {
	if !f.members.remove(s) {
		return
	}
	f.index.remove(s)
	f.metrics.connections.Dec()
	f.follower.release()
}

// livePositions returns the live position of every partition, in partition
// order.
func (f *Fanout) livePositions() []position {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	streams := f.follower.list()
	live := make([]position, len(streams))
	for i, st := range streams {
		live[i] = st.live
	}
	return live
}

func (f *Fanout) disconnectAll(d conn.Disconnect) {
	for _, s := range f.members.all() {
		f.disconnect(s, d)
	}
}

// ensureAccountsLoaded looks up the accounts of a batch that the account tree
// does not have yet, so that events of a new account match its subscribers.
func (f *Fanout) ensureAccountsLoaded(ctx context.Context, b *batch) {
	tree := f.directory.Tree()
	asked := ""
	for i := range b.frames {
		account := b.frames[i].account
		if account == asked {
			continue
		}
		asked = account
		if _, ok := tree.Account(account); ok {
			continue
		}
		_, known, err := f.directory.Lookup(ctx, account)
		if err != nil {
			f.logger.Warn("account lookup failed", "account", account, "error", err)
			f.metrics.streamErrors.WithLabelValues("accounts").Inc()
		}
		if known {
			tree = f.directory.Tree()
		}
	}
}

// flushed observes the delivery latency of the last subscriber of a group that
// a writer has flushed.
func (f *Fanout) flushed(group []*subscriber) {
	f.traces.flushed(group)
	s := group[len(group)-1]
	s.mu.Lock()
	id := s.lastID
	s.mu.Unlock()
	if id != 0 && !s.replaying.Load() {
		f.metrics.latency.Observe(max(0, time.Since(time.UnixMilli(event.ID.Milli(id))).Seconds()))
	}
}

// Drain closes every subscriber with 1012, spread over the configured time, and
// refuses new requests. A handshake that is already under way is completed and
// then closed with 1012. Drain returns when all have gone, or with ctx.
func (f *Fanout) Drain(ctx context.Context) {
	f.draining.Store(true)
	all := f.members.all()
	f.logger.Info("drain started", "connections", len(all))
	started := time.Now()
	for i, s := range all {
		due := time.Duration(int64(f.cfg.DrainSpread) * int64(i) / int64(len(all)))
		if wait := due - time.Since(started); wait > time.Millisecond && ctx.Err() == nil {
			retry.Sleep(ctx, wait)
		}
		f.disconnect(s, DisconnectRestart)
	}
	for ctx.Err() == nil && f.handshakes.Load()+int64(f.members.countDisconnecting()) > 0 {
		retry.Sleep(ctx, 20*time.Millisecond)
	}
}
