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

// Authenticator authenticates the tokens of subscribers.
type Authenticator interface {
	// Authenticate returns the principal of a token. Returns fault.KindUnauthenticated for a token
	// that is malformed, forged, expired or revoked, and fault.KindForbidden for a valid one of an
	// audience that is not in accept. An empty accept accepts all audiences.
	Authenticate(ctx context.Context, token string, accept ...identity.Audience) (*identity.Principal, error)
	// CheckPrincipal returns an error when a principal's token is no longer valid. It performs
	// no I/O.
	CheckPrincipal(p *identity.Principal) error
}

// Directory has the account tree and permissions.
type Directory interface {
	// Tree returns the current account tree.
	Tree() *identity.Tree
	// VisibilityOf returns what the role of a principal sees now. It performs no I/O.
	VisibilityOf(p *identity.Principal) *identity.Visibility
	// Changed returns a channel that is closed at the next change of the tree or of
	// permissions.
	Changed() <-chan struct{}
	// FindAccount loads an account that Tree does not have yet.
	FindAccount(ctx context.Context, accountID string) (identity.Account, bool, error)
}

// Deps holds the dependencies of a Fanout.
type Deps struct {
	LogReader Log
	Auth      Authenticator
	Directory Directory
	Presence  Presence
	Limits    Limits       // may be nil when the settings limit nothing
	Figures   QueueFigures // nil: snapshots have no figures
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Tracer    *tracing.Tracer // nil: tracing is off
	Peers     Peers           // nil: questions of other nodes are not answered
}

// Fanout is the events channel of one node.
type Fanout struct {
	*snapshots
	*cluster
	explanations *connectionExplainer

	cfg       Config
	log       Log
	auth      Authenticator
	directory Directory
	metrics   *metrics
	logger    *slog.Logger

	index              *index
	history            *kafkaHistory
	lookups            *offsetLookup
	newestOffsets      *newestAccountOffsets
	logIdentity        *logIdentity
	resumer            *resumer
	gapCount           atomic.Int64 // gaps found in the log by the live streams
	writers            *conn.Writers[*subscriber]
	followedPartitions *followedPartitions
	accountPartitions  *accountPartitions
	joinLag            joinLag
	ringShare          atomic.Int64 // bytes that the ring of one partition may use
	subscribers        *subscriberSet
	principals         sharedPrincipals
	traces             traces
	handshakes         atomic.Int64 // handshakes in progress
	sweeps             uint64       // number of sweeps; used by sweepOnce only
	goroutines         *goroutineGroup
}

// New validates the settings and creates a Fanout. It starts no goroutine.
func New(cfg Config, deps Deps) (*Fanout, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}

	f := &Fanout{
		cfg: cfg, log: deps.LogReader, auth: deps.Auth, directory: deps.Directory, metrics: newMetrics(deps.Metrics),
		logger: deps.Log,
		index:  newIndex(), subscribers: newSubscriberSet(), traces: traces{tracer: deps.Tracer},
	}
	f.goroutines = newGoroutineGroup()
	f.history = newKafkaHistory(f.log, cfg.HistoryBytes, cfg.Compression, f.metrics, f.ensureAccountsLoaded)
	f.lookups = &offsetLookup{log: f.log}
	f.logIdentity = &logIdentity{log: f.log}
	f.newestOffsets = &newestAccountOffsets{}
	f.writers = conn.NewWriters(runtime.GOMAXPROCS(0), cfg.GatherWindow, f.afterFlush)
	f.ringShare.Store(int64(cfg.RingBytes))
	f.followedPartitions = newFollowedPartitions(f, f.goroutines, cfg.StreamLinger)
	f.accountPartitions = newAccountPartitions(f.log, f, f.metrics, f.logger)
	f.resumer = &resumer{
		log: f.log, logIdentity: f.logIdentity, lookups: f.lookups, history: f.history,
		followedPartitions: f.followedPartitions,
		accountPartitions:  f.accountPartitions, newestOffsets: f.newestOffsets, directory: f.directory,
		presence: deps.Presence,
	}
	f.snapshots = &snapshots{
		directory: f.directory, accountPartitions: f.accountPartitions, logIdentity: f.logIdentity,
		states: &stateViews{
			log: f.log, directory: f.directory, goroutines: f.goroutines, maxBytes: cfg.SnapshotBytes,
			metrics: f.metrics, logger: f.logger, views: make(map[int]*stateView),
		},
		today: figuresToday{source: deps.Figures, accounts: map[string]accountFiguresToday{}},
	}
	f.cluster = &cluster{
		cfg: cfg, directory: f.directory, presence: deps.Presence, subscribers: f.subscribers, thisNode: f,
		limiter: &connectionLimiter{cfg: cfg, limits: deps.Limits, metrics: f.metrics},
		metrics: f.metrics, logger: f.logger,
	}
	f.explanations = &connectionExplainer{
		nodeID: cfg.NodeID, directory: f.directory, subscribers: f.subscribers,
		followedPartitions: f.followedPartitions, peers: deps.Peers,
		pastConnections: pastConnections{since: time.Now()},
	}

	return f, nil
}

// Run serves until ctx ends. To disconnect subscribers with a close frame, call Drain
// first.
func (f *Fanout) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for range f.writers.Count() {
		running.Go(func() { f.writers.Run(f.goroutines.ctx) })
	}

	for _, work := range []func(context.Context){f.sweep, f.followPermissions, f.publishPresence, f.rebalance,
		f.accountPartitions.run, f.accountPartitions.detectGrowth, f.explanations.answerPeers} {
		running.Go(func() { work(f.goroutines.ctx) })
	}

	<-ctx.Done()
	f.draining.Store(true)
	f.followedPartitions.close()
	f.goroutines.end()

	for _, s := range append(f.subscribers.listConnected(), f.subscribers.listDisconnecting()...) {
		f.remove(s, DisconnectBroken)
	}

	running.Wait()
	f.goroutines.wait()
	f.history.close()

	return nil
}

// register adds the subscriber to the connected ones and to the index: from then on it
// receives events, permission changes and Drain. Its frames stay in the queue until
// startDelivery.
func (f *Fanout) register(a *admission) {
	s := a.subscriber
	// As if a writer had it, so that no push schedules a connection that does not exist yet.
	s.queueOwner = scheduled
	s.replaying.Store(a.starts != nil)
	f.subscribers.add(s)
	f.metrics.connections.Inc()
	f.addToIndex(a)

	// Permissions may have changed since admit. After subscribers.add, Drain and
	// applyPermissions include s.
	for tree := f.directory.Tree(); ; {
		f.applyPermission(s, tree)
		now := f.directory.Tree()
		if now == tree {
			break
		}
		tree = now // applyPermissions may have applied tree before the older one
	}

	f.checkLogID(s)
	// A gap found since admit may be before its starts; at a later one it is disconnected as a connected one.
	if a.gapCount != f.gapCount.Load() {
		f.disconnect(s, DisconnectEventsLost)
	}
	// Drain may have listed the subscribers before this one was added.
	if f.draining.Load() {
		f.disconnect(s, DisconnectRestart)
	}
}

// addToIndex adds the subscriber to the index, unless it was disconnected after
// register added it to the connected ones.
func (f *Fanout) addToIndex(a *admission) {
	s := a.subscriber
	f.index.mu.Lock()
	defer f.index.mu.Unlock()

	// Nobody would remove it from the index again.
	if s.partitions.removed {
		return
	}

	f.startTracking(a)
	f.recordFirstOffsets(a)
	s.partitions.isIndexed = true
	f.index.insert(s)
}

// startTracking sets the positions from which the subscriber's cursor goes on. It takes the
// subscriber's lock, because a stream that finds its topic recreated compares the logs of
// all subscribers. The caller holds index.mu for writing.
func (f *Fanout) startTracking(a *admission) {
	s := a.subscriber
	if s.cursorTracker == nil {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.cursorTracker.logID, s.cursorTracker.partitions = f.logIdentity.id(), s.partitions.partitionCount
	for _, start := range a.starts {
		s.cursorTracker.advance(start.partition, start.position)
	}

	if a.starts == nil {
		for p := range s.partitions.interest.all() {
			s.cursorTracker.advance(p, f.followedPartitions.stream(p).livePosition)
		}
	}

	// The account tree or the accounts' partitions of this node may be late: the cursor keeps what the client may
	// need again.
	for _, other := range a.otherPositions {
		s.cursorTracker.advance(other.partition, other.position)
		s.cursorTracker.retainPosition(other.partition, time.Now())
	}
}

// startDelivery schedules the first write and starts the replay, if the subscriber has
// one.
func (f *Fanout) startDelivery(a *admission) {
	f.scheduleNow(f.goroutines.ctx, a.subscriber)
	if a.starts != nil {
		r := f.newReplay(a.subscriber, a.starts, a.earliest)
		f.goroutines.start(func() { f.catchUp(f.goroutines.ctx, r) })
	}
}

// closeTimeout bounds the write of a close frame to a full socket.
const closeTimeout = 5 * time.Second

// disconnect closes a subscriber with a close frame and removes it from the
// connection counts.
func (f *Fanout) disconnect(s *subscriber, d conn.Disconnect) {
	first, wake := s.close(d, time.Now().Add(closeTimeout))
	if !first {
		return
	}
	f.unregister(s)
	if wake {
		f.scheduleNow(f.goroutines.ctx, s)
	}
}

// scheduleNow hands s to a writer.
func (f *Fanout) scheduleNow(ctx context.Context, s *subscriber) {
	f.writers.ScheduleNow(ctx, []*subscriber{s})
}

// remove deletes a subscriber whose connection has ended. It counts the reason of an
// earlier disconnect, or else d.
func (f *Fanout) remove(s *subscriber, d conn.Disconnect) {
	f.unregister(s)
	if !s.markClosed() {
		return
	}

	s.mu.Lock()
	if s.closing != nil {
		d = s.closing.Disconnect
	}

	past := s.pastConnection(d)
	s.mu.Unlock()

	f.explanations.pastConnections.add(past)
	f.metrics.closed.WithLabelValues(codeLabel(d.Code)).Inc()
	s.transport.close(s)
	f.subscribers.forget(s)
}

// unregister removes a subscriber from the connected ones, the index and the partitions that it follows. Only the
// first call does.
func (f *Fanout) unregister(s *subscriber) {
	if !f.subscribers.startDisconnecting(s) {
		return
	}
	// Only after it has left the index: what is listed there relies on its streams.
	f.followedPartitions.unfollow(f.removeFromIndex(s))
	f.metrics.connections.Dec()
}

// removeFromIndex removes a subscriber from the index and returns the partitions that
// it followed.
func (f *Fanout) removeFromIndex(s *subscriber) (followed partitionSet) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	f.index.delete(s)
	f.recordReached(s)
	followed = s.partitions.interest
	s.partitions = subscriberPartitions{removed: true, joinRunning: s.partitions.joinRunning}
	return followed
}

// livePositions returns the live positions by partition; a partition that this node
// does not follow has the offset -1.
func (f *Fanout) livePositions() (live []position) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	// Under the lock for writing, since a stream moves its position while it holds it for reading.
	for _, st := range f.followedPartitions.list() {
		for len(live) < st.partition {
			live = append(live, positionAt(-1))
		}
		live = append(live, st.livePosition)
	}
	return live
}

// ensureAccountsLoaded loads the accounts of a batch that are missing in the account
// tree, so that events of a new account match its subscribers.
func (f *Fanout) ensureAccountsLoaded(ctx context.Context, b *batch) {
	asked := ""
	for i := range b.frames {
		account := b.frames[i].account
		if account != asked {
			asked = account
			f.loadAccount(ctx, account)
		}
	}
}

// afterFlush observes the delivery latency of the last subscriber in a group that a
// writer has flushed.
func (f *Fanout) afterFlush(group []*subscriber) {
	f.traces.recordFlushed(group)
	s := group[len(group)-1]
	s.mu.Lock()
	id := s.lastID
	s.mu.Unlock()
	if id != 0 && !s.replaying.Load() {
		f.metrics.latency.Observe(max(0, time.Since(time.UnixMilli(event.ID.Milli(id))).Seconds()))
	}
}

// Drain closes every subscriber with 1012, spread over the configured time, and
// refuses new requests. A handshake in progress is completed and then closed with
// 1012. Drain returns when all connections have ended, or ctx has.
func (f *Fanout) Drain(ctx context.Context) {
	f.draining.Store(true)
	all := f.subscribers.listConnected()
	f.logger.Info("drain started", "connections", len(all))
	started := time.Now()

	for i, s := range all {
		due := time.Duration(int64(f.cfg.DrainSpread) * int64(i) / int64(len(all)))
		wait := due - time.Since(started)
		// When ctx has ended, the rest is disconnected without pauses.
		if wait > time.Millisecond && ctx.Err() == nil {
			retry.Sleep(ctx, wait)
		}
		f.disconnect(s, DisconnectRestart)
	}

	for ctx.Err() == nil && f.handshakes.Load()+int64(f.subscribers.countDisconnecting()) > 0 {
		retry.Sleep(ctx, 20*time.Millisecond)
	}
}
