package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"trunkline/aisession/listening"
	"trunkline/aisession/pcmsocket"
	"trunkline/api"
	"trunkline/app/backend"
	"trunkline/audit"
	"trunkline/config/aiprovider"
	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/certificate"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/masterkey"
	"trunkline/internal/memorylimit"
	"trunkline/internal/retry"
	"trunkline/internal/selfcheck"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
	"trunkline/recording"
	"trunkline/settings"
	"trunkline/webhook"
)

// Config has the settings and dependencies of an App.
type Config struct {
	Settings *settings.Settings
	Log      *slog.Logger
	Version  string
}

// App is one process of Trunkline.
type App struct {
	settings  *settings.Settings
	log       *slog.Logger
	version   string
	node      string // unique name of this process
	registry  *prometheus.Registry
	lifecycle *lifecycle

	stores            []selfcheck.Dependency // further backends to check; complete before the self-check runs
	db                *sqldb.DB
	redis             redis.UniversalClient
	cluster           *kafka.Cluster
	audit             *audit.Log
	keys              *masterkey.Keyring
	encryption        *encryption.Service // nil without the roles api, origination and aisession
	providers         *aiprovider.Service // nil without the roles api, origination and aisession
	webhooks          *webhook.Service    // nil without the role api
	identity          *identity.Service
	limiter           *identity.RedisLimiter
	recordingPolicies *callrecording.Service // nil without recordings
	recorder          *recording.Recorder    // nil without recordings
	listeners         *listening.Listeners   // nil without the roles api, origination and aisession
	health            *health
	certificate       *certificate.Server // of the public listener and SIP over TLS; nil without TLS
	tracer            *tracing.Tracer     // nil: tracing is off

	public, private net.Listener
}

// New opens the configured backends and builds the packages. If it fails, it closes
// those it has opened.
func New(ctx context.Context, cfg Config) (_ *App, err error) {
	a := &App{settings: cfg.Settings, log: cfg.Log, version: cfg.Version, node: nodeName(),
		registry: prometheus.NewRegistry(), health: &health{}}
	a.lifecycle = newLifecycle(cfg.Log)
	defer func() {
		if err != nil {
			// New may have failed because ctx has ended.
			err = errors.Join(err, a.lifecycle.closeAll(context.WithoutCancel(ctx)))
		}
	}()

	a.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerProcessMetrics(a.registry, cfg.Version, a.health)
	limit := memorylimit.Follow(os.DirFS("/"), os.Getenv)
	if limit > 0 {
		a.log.Info("memory limit set to nine tenths of the container's", "bytes", limit)
	}
	if err := checkFiles(cfg.Settings); err != nil {
		return nil, err
	}
	if err := a.dataDir().Prepare(); err != nil {
		return nil, err
	}

	if err := a.openTracing(ctx, cfg.Version); err != nil { // first, so that it ends after the parts that create spans
		return nil, err
	}

	for _, step := range []func(context.Context) error{a.listen, a.openCertificate, a.openBackends, a.openAudit,
		a.openSecrets, a.openIdentity, a.buildRoles} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}

	a.lifecycle.addRun("release of the start's memory", a.releaseStart)

	return a, nil
}

// Run serves until ctx ends, then drains. It returns nil after a clean drain.
func (a *App) Run(ctx context.Context) error { return a.lifecycle.run(ctx, a.settings.DrainTimeout) }

func (a *App) dataDir() selfcheck.DataDir {
	return selfcheck.DataDir{Path: a.settings.DataDir, MinFree: a.settings.DiskMinFree}
}

func (a *App) hasRole(role string) bool { return slices.Contains(a.settings.Roles, role) }

// openBackends opens Kafka, Redis and SQL; they are closed last.
func (a *App) openBackends(ctx context.Context) error {
	err := a.awaitBackend(ctx, "the database", "check database.url, and that the server is up and accepts our login",
		func(ctx context.Context) (err error) {
			a.db, err = backend.OpenDatabase(ctx, a.settings, a.log)
			return err
		}, func(err error) bool {
			return a.settings.Database.URL != "" && fault.KindOf(err) == fault.KindUnavailable
		})
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}

	a.lifecycle.addClose("database", func(context.Context) error { return a.db.Close() })

	client, closeRedis, err := backend.OpenRedis(a.settings, a.log)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}

	a.redis = client
	a.lifecycle.addClose("redis", func(context.Context) error { return closeRedis() })

	cluster, closeKafka, err := backend.OpenKafka(ctx, a.settings,
		&backend.Liveness{Client: a.redis, Prefix: a.settings.Redis.KeyPrefix}, a.registry, a.log)
	if errors.Is(err, syscall.EADDRINUSE) {
		return listenError("kafka.embedded_listen", err)
	}
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}

	a.cluster = cluster
	a.health.broker.Store(cluster)
	a.lifecycle.addClose("kafka", func(context.Context) error { return closeKafka() })

	return nil
}

func (a *App) openIdentity(ctx context.Context) error {
	limiter, err := identity.NewRedisLimiter(a.redis, a.settings.Redis.KeyPrefix, a.registry, a.log)
	if err != nil {
		return err
	}

	a.limiter = limiter

	a.identity, err = identity.New(ctx, a.identityConfig(), a.db, a.keys, limiter, a.audit, a.registry, a.log)
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}

	if err := a.requireIdentitySecrets(ctx); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if err := a.ensureMasterKey(); err != nil {
		return fmt.Errorf("master keys: %w", err)
	}
	if err := a.prepareSigning(ctx); err != nil {
		return fmt.Errorf("signing keys: %w", err)
	}

	a.lifecycle.addRunAtOnce("identity", a.identity.Run)
	return a.seedDirectory(ctx)
}

// buildRoles builds the components of the node's roles. They are connected here only: each builder
// takes what it needs as parameters, and what it returns is nil without its role.
func (a *App) buildRoles(ctx context.Context) error {
	a.lifecycle.addRunFirst("topics", a.ensureTopics)
	a.lifecycle.addRun("partitions", a.keepTopics)
	queueConfigs := a.buildQueueConfigs()

	if err := a.buildNormalizer(); err != nil {
		return err
	}

	figureStore, err := a.buildFigures(ctx)
	if err != nil {
		return err
	}

	platformFeeds, err := a.newFeedReader(ctx)
	if err != nil {
		return err
	}

	if err := a.buildStats(queueConfigs, figureStore, platformFeeds); err != nil {
		return err
	}

	subscribers, err := a.buildFanout(figureStore) // without the role fanout it has the state alone
	if err != nil {
		return err
	}

	in, feeds, err := a.buildIngest(ctx)
	if err != nil {
		return err
	}

	index, err := a.buildReports(ctx)
	if err != nil {
		return err
	}

	recordings, err := a.buildRecordings(ctx, index)
	if err != nil {
		return err
	}

	a.buildWebhooks()

	phones, err := a.buildSIP()
	if err != nil {
		return err
	}

	admission, err := a.buildAdmission()
	if err != nil {
		return err
	}

	// The sessions need it before the actions on calls are built: it gets these below.
	platform := &platformControl{tree: a.identity.Directory.Tree}
	sessions, sessionsOnSIP, err := a.buildAISessions(phones, admission, platform)
	if err != nil {
		return err
	}

	calls, err := a.buildOrigination(ctx, phones, sessionsOnSIP, admission)
	if err != nil {
		return err
	}

	controls, err := a.buildControl(ctx, subscribers, feeds, admission, calls)
	if err != nil {
		return err
	}

	deps := api.Deps{Auth: a.identity.Tokens, Accounts: a.identity.Directory, Ingest: in, Tracer: a.tracer}
	// A nil pointer in an interface would not be nil, and its routes would exist.
	if calls != nil {
		deps.Calls = calls
	}
	if controls != nil {
		deps.Control = controls
	}
	if controls != nil && len(a.settings.Feeds) > 0 {
		platform.control = controls
		a.buildListeningRules(subscribers, platform)
	}
	if a.recorder != nil { // it asks the node that connects the call
		deps.LiveRecorder = a.recorder
	}

	if a.hasRole(settings.RoleFanout) {
		deps.Channel, deps.ChannelLogins, deps.ChannelTokens = subscribers, a.identity.Credentials, a.identity.Tokens
	}

	if sessions != nil {
		deps.AITester, deps.AIAnnouncer, deps.AIMedia, deps.AIOpener = sessions, sessions, pcmsocket.New(sessions,
			a.log), a.providers
		deps.AICalls = sessions
	}

	if a.listeners != nil {
		deps.CallListeners = a.listeners
	}

	if a.hasRole(settings.RoleAPI) {
		err := a.buildPurge(ctx, backend.Purged{
			Recordings: recordings, Policies: a.recordingPolicies, Encryption: a.encryption, Providers: a.providers,
			Webhooks: a.webhooks,
			Index:    index, Figures: figureStore, QueueConfigs: queueConfigs,
		})
		if err != nil {
			return err
		}

		deps.Portal, deps.Sessions = a.identity.Credentials, a.identity.Tokens
		deps.Directory, deps.OTPs, deps.Audit = a.identity.Directory, a.identity.Credentials, a.audit
		deps.Encryption = a.encryption
		deps.Recordings = recordings
		deps.CallRecording = a.recordingPolicies
		deps.Roster = subscribers
		deps.Reports, deps.Figures, deps.QueueConfigs = index, figureStore, queueConfigs
		deps.AlertConfigs = queueConfigs
		deps.Alerts = figureStore
		deps.Abandoned = figureStore
		deps.Feeds = platformFeeds
		deps.DeadLetters = a.newDeadLetters()
		deps.AIProviders, deps.AIOpener = a.providers, a.providers
		deps.Webhooks, deps.Explain = a.webhooks, a.newExplain(subscribers)
	}

	board, err := buildBoard()
	if err != nil {
		return err
	}

	handler, err := api.New(api.Config{Settings: a.settings.API, Board: board}, deps, a.registry, a.log)
	if err != nil {
		return err
	}

	a.lifecycle.addRunAtOnce("self-check", a.newSelfCheck().Run)
	a.buildServer(handler, subscribers)
	return nil
}

// startLasts is the time after which nothing of the start is under way: partitions are assigned and
// read, caches are filled.
const startLasts = 10 * time.Second

// releaseStart returns to the kernel what only the start needed.
func (a *App) releaseStart(ctx context.Context) error {
	if !retry.Sleep(ctx, startLasts) {
		return nil
	}

	err := memorylimit.ReleaseStart()
	if err != nil {
		a.log.Warn("memory of the start not released", "error", err)
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

// buildServer registers the public server and the steps before its end. It is called last, so that these are what
// stops first: readiness fails, then subscribers are disconnected, then the server ends.
func (a *App) buildServer(handler http.Handler, subscribers *fanout.Fanout) {
	a.lifecycle.addServer("public listener", a.publicServer(handler))
	if a.hasRole(settings.RoleFanout) {
		a.lifecycle.addDrain("subscribers", subscribers.Drain)
	}
	a.lifecycle.addDrain("readiness", a.announceDrain)
}

// announceDrain makes /readyz fail and returns when balancers have had drain_delay to notice it.
// Connections that come meanwhile are served.
func (a *App) announceDrain(ctx context.Context) {
	a.health.setDraining()

	delay := time.NewTimer(a.settings.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-ctx.Done():
	}
}
