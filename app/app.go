package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"trunkline/api"
	"trunkline/app/backend"
	"trunkline/audit"
	"trunkline/cdrindex"
	"trunkline/control"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/certificate"
	"trunkline/internal/kafka"
	"trunkline/internal/masterkey"
	"trunkline/internal/memorylimit"
	"trunkline/internal/retry"
	"trunkline/internal/selfcheck"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
	"trunkline/origination"
	"trunkline/settings"
	"trunkline/stats"
	"trunkline/stats/figures"
)

// Config has the settings and dependencies of an App.
type Config struct {
	Settings *settings.Settings
	Log      *slog.Logger
	Version  string
}

// App is one process of Trunkline.
type App struct{ *process }

// process has the settings, the log and what else exists before the backends are opened. New sets its last
// fields; they do not change afterwards.
type process struct {
	settings  *settings.Settings
	version   string
	node      string // unique name of this process
	registry  *prometheus.Registry
	lifecycle *lifecycle
	health    *health

	log         *slog.Logger
	tracer      *tracing.Tracer       // nil: tracing is off
	certificate *certificate.Reloader // of the public listener and SIP over TLS; nil without TLS
}

// base has the backends and services that all roles use. openBase sets the fields in their order; they do not
// change afterwards.
type base struct {
	*process
	db           *sqldb.DB
	redis        redis.UniversalClient
	cluster      *kafka.Cluster
	audit        *audit.Log
	keys         *masterkey.Keyring
	sealedStores sealedStores
	limiter      *identity.RedisLimiter
	identity     *identity.Service
}

// New opens the configured backends and builds the packages. Each registers with the lifecycle, and they end
// in reverse. If New fails, it closes what it has opened.
func New(ctx context.Context, cfg Config) (_ *App, err error) {
	p := &process{settings: cfg.Settings, log: cfg.Log, version: cfg.Version, node: nodeName(),
		registry: prometheus.NewRegistry(), lifecycle: newLifecycle(cfg.Log), health: &health{}}
	defer func() {
		if err != nil {
			// New may have failed because ctx has ended.
			err = errors.Join(err, p.lifecycle.closeAll(context.WithoutCancel(ctx)))
		}
	}()

	if err := p.prepare(); err != nil {
		return nil, err
	}
	if err := p.openTracing(ctx); err != nil { // first, so that it ends after the parts that create spans
		return nil, err
	}

	public, err := listen(p)
	if err != nil {
		return nil, err
	}

	p.certificate, err = openCertificate(p)
	if err != nil {
		return nil, err
	}

	b, err := openBase(ctx, p)
	if err != nil {
		return nil, err
	}

	built, err := buildRoles(ctx, b)
	if err != nil {
		return nil, err
	}

	handler, err := newHandler(b, built)
	if err != nil {
		return nil, err
	}

	p.lifecycle.addRunAtOnce("self-check", newSelfCheck(b, built.recordings.stores).Run)

	// Last, so that these end first: readiness fails, then subscribers are disconnected, then the server ends.
	p.lifecycle.addServer("public listener", publicServer(p, public, handler))
	if p.hasRole(settings.RoleFanout) {
		p.lifecycle.addDrain("subscribers", built.subscribers.Drain)
	}
	p.lifecycle.addDrain("readiness", p.announceDrain)
	p.lifecycle.addRun("release of the start's memory", p.releaseStart)

	return &App{p}, nil
}

// Run serves until ctx ends, then drains. It returns nil after a clean drain.
func (a *App) Run(ctx context.Context) error { return a.lifecycle.run(ctx, a.settings.DrainTimeout) }

// prepare registers the metrics of the process, and checks the files and the directory that it needs.
func (p *process) prepare() error {
	p.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerProcessMetrics(p.registry, p.version, p.health)
	limit := memorylimit.Follow(os.DirFS("/"), os.Getenv)
	if limit > 0 {
		p.log.Info("memory limit set to nine tenths of the container's", "bytes", limit)
	}

	if err := checkFiles(p.settings); err != nil {
		return err
	}
	return p.dataDir().Prepare()
}

func (p *process) dataDir() selfcheck.DataDir {
	return selfcheck.DataDir{Path: p.settings.DataDir, MinFree: p.settings.DiskMinFree}
}

func (p *process) hasRole(role string) bool { return slices.Contains(p.settings.Roles, role) }

// handlesCalls reports whether this process connects calls or takes requests about them: it then stores recordings,
// of calls or of clients, and knows the AI providers.
func (p *process) handlesCalls() bool {
	return p.hasRole(settings.RoleAPI) || p.hasRole(settings.RoleOrigination) || p.hasRole(settings.RoleAISession)
}

// hasLogins reports whether users log in at this process, so that it signs tokens.
func (p *process) hasLogins() bool {
	return p.hasRole(settings.RoleAPI) || p.hasRole(settings.RoleFanout)
}

// openBase opens the backends, which are closed last, then the audit log, the sealed stores and the directory.
func openBase(ctx context.Context, p *process) (_ *base, err error) {
	b := &base{process: p}
	b.db, err = openDatabase(ctx, p)
	if err != nil {
		return nil, err
	}

	b.redis, err = openRedis(p)
	if err != nil {
		return nil, err
	}

	b.cluster, err = openKafka(ctx, p, b.redis)
	if err != nil {
		return nil, err
	}

	b.audit, err = openAudit(ctx, b)
	if err != nil {
		return nil, err
	}

	b.keys, err = backend.MasterKeys(p.settings)
	if err != nil {
		return nil, fmt.Errorf("master keys: %w", err)
	}

	b.sealedStores, err = openSealedStores(ctx, b)
	if err != nil {
		return nil, err
	}

	b.limiter, err = identity.NewRedisLimiter(b.redis, p.settings.Redis.KeyPrefix, p.registry, p.log)
	if err != nil {
		return nil, err
	}

	b.identity, err = openIdentity(ctx, b)
	return b, err
}

// roleParts are the parts of the node's roles that others use, nil without their role.
type roleParts struct {
	queueConfigs *stats.QueueConfigs
	figures      *figures.Store
	feedStates   *feedReader
	subscribers  *fanout.Fanout // without the role fanout it has the state alone
	ingest       api.Ingest
	index        *cdrindex.Index
	recordings   recordings
	ai           aiSessions
	calls        *origination.Service
	control      *control.Service
}

// buildRoles builds the components of the node's roles. They are connected here only: each builder
// takes what it needs as parameters.
func buildRoles(ctx context.Context, b *base) (*roleParts, error) {
	b.lifecycle.addRunFirst("topics", b.ensureTopics)
	b.lifecycle.addRun("partitions", b.keepTopics)
	queueConfigs := buildQueueConfigs(b)

	if err := buildNormalizer(b); err != nil {
		return nil, err
	}

	figureStore, err := buildFigures(ctx, b)
	if err != nil {
		return nil, err
	}

	feedStates, err := newFeedReader(ctx, b)
	if err != nil {
		return nil, err
	}

	if err := buildStats(b, queueConfigs, figureStore, feedStates); err != nil {
		return nil, err
	}

	subscribers, err := buildFanout(b, figureStore)
	if err != nil {
		return nil, err
	}

	in, feeds, err := buildIngest(ctx, b)
	if err != nil {
		return nil, err
	}

	index, err := buildCallRecordIndex(ctx, b)
	if err != nil {
		return nil, err
	}

	recordings, err := buildRecordings(ctx, b, index)
	if err != nil {
		return nil, err
	}

	buildWebhooks(b)

	phones, err := buildSIP(b)
	if err != nil {
		return nil, err
	}

	admission, err := buildAdmission(b)
	if err != nil {
		return nil, err
	}

	// The sessions need it before the actions on calls are built: it gets these below.
	platform := &platformControl{tree: b.identity.Directory.Tree}
	ai, err := buildAISessions(b, phones, admission, recordings.recorder, platform)
	if err != nil {
		return nil, err
	}

	calls, err := buildOrigination(ctx, b, phones, ai, admission)
	if err != nil {
		return nil, err
	}

	controls, err := buildControl(ctx, b, subscribers, feeds, admission, calls)
	if err != nil {
		return nil, err
	}

	if controls != nil && len(b.settings.Feeds) > 0 {
		platform.control = controls
		buildListeningRules(b, subscribers, platform)
	}

	built := &roleParts{queueConfigs: queueConfigs, figures: figureStore, feedStates: feedStates,
		subscribers: subscribers, ingest: in, index: index, recordings: recordings, ai: ai, calls: calls,
		control: controls}
	if b.hasRole(settings.RoleAPI) {
		err = buildPurge(ctx, b, built)
	}

	return built, err
}

// startLasts is the time after which nothing of the start is under way: partitions are assigned and
// read, caches are filled.
const startLasts = 10 * time.Second

// releaseStart returns to the kernel what only the start needed.
func (p *process) releaseStart(ctx context.Context) error {
	if !retry.Sleep(ctx, startLasts) {
		return nil
	}

	err := memorylimit.ReleaseStartMemory()
	if err != nil {
		p.log.Warn("memory of the start not released", "error", err)
	}

	return nil
}

// nodeName returns a new unique name for this process.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	return host + "-" + uuid.NewString()[:8]
}

// announceDrain makes /readyz fail and returns when balancers have had drain_delay to notice it.
// Connections that come meanwhile are served.
func (p *process) announceDrain(ctx context.Context) {
	p.health.setDraining()

	delay := time.NewTimer(p.settings.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-ctx.Done():
	}
}
