package api

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/ingest/deadletter"
	"trunkline/internal/panics"
	"trunkline/internal/tracing"
	"trunkline/recording"
	"trunkline/stats"
)

// Deps are the packages that the routes call. All but Auth and Accounts may be nil; the API then has no
// routes for them.
type Deps struct {
	Auth              Authenticator
	Accounts          Accounts
	Portal            Portal
	Sessions          Sessions // required with Portal
	Directory         Directory
	OTPs              OTPs // required with Directory
	Ingest            Ingest
	Channel           Channel
	ChannelLogins     ChannelLogins // required with Channel
	ChannelTokens     ChannelTokens // required with Channel
	Encryption        Encryption
	Recordings        Recordings
	RecordingPolicies RecordingPolicies
	LiveRecorder      *recording.Recorder
	CallListeners     CallListeners
	Roster            Roster              // required with CallReports or Figures, where supervisors have queues
	CallReports       CallReports         // requires Audit
	Figures           FigureReports       // requires Audit
	QueueConfigs      QueueConfigs        // requires Audit
	AlertConfigs      *stats.QueueConfigs // requires Audit
	Alerts            Alerts
	Abandoned         AbandonedReports           // requires Audit
	Feeds             Feeds                      // requires Audit
	DeadLetters       *deadletter.AccountLetters // requires Audit
	Audit             AuditLog
	Calls             Calls
	Control           Control
	Webhooks          Webhooks
	Explain           Explain
	AIProviders       AIProviders
	AIProviderOpener  AIProviderOpener // required with AITester, AIAnnouncer or AIMedia
	AITester          SessionTester
	AIAnnouncer       SessionAnnouncer
	AIMedia           MediaSocket
	AICalls           CallUpdater
	Tracer            *tracing.Tracer // nil if tracing is off
}

// API handles the requests of the public listener.
type API struct {
	config  Config
	deps    Deps
	auth    auth
	log     *slog.Logger
	metrics *metrics
	panics  *panics.Recoverer
	echo    *echo.Echo

	strangers *bodyBudget // bodies of requests that are not authenticated
	callers   *bodyBudget // of those that are
}

// New returns the API with the routes of deps.
func New(config Config, deps Deps, reg prometheus.Registerer, log *slog.Logger) (*API, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if deps.Auth == nil || deps.Accounts == nil {
		return nil, errors.New("api: Auth or Accounts is missing")
	}
	if (deps.Portal == nil) != (deps.Sessions == nil) {
		return nil, errors.New("api: Portal and Sessions go together")
	}
	if (deps.Directory == nil) != (deps.OTPs == nil) {
		return nil, errors.New("api: Directory and OTPs go together")
	}

	if (deps.CallReports != nil || deps.Figures != nil || deps.QueueConfigs != nil || deps.AlertConfigs != nil ||
		deps.Abandoned != nil || deps.Feeds != nil ||
		deps.DeadLetters != nil) && deps.Audit == nil {
		return nil, errors.New("api: Audit is missing")
	}

	if (deps.Channel == nil) != (deps.ChannelLogins == nil) || (deps.Channel == nil) != (deps.ChannelTokens == nil) {
		return nil, errors.New("api: Channel, ChannelLogins and ChannelTokens go together")
	}
	if deps.AIProviderOpener == nil && (deps.AITester != nil || deps.AIAnnouncer != nil || deps.AIMedia != nil) {
		return nil, errors.New("api: AIProviderOpener is missing")
	}

	a := &API{
		config: config.withDefaults(), deps: deps, auth: auth{deps.Auth, deps.Accounts}, log: log, echo: echo.New(),
		strangers: newBodyBudget(strangerLimits()), callers: newBodyBudget(callerLimits()),
	}
	// Before the metrics, which have a series for each route.
	routes := a.routes()
	a.metrics, a.panics = newMetrics(reg, routes), panics.New(reg, log)
	a.panics.InitMetrics(panicPlace)
	a.echo.IPExtractor = clientAddress(config.TrustedProxies)
	a.echo.Use(a.withRequestID)

	if deps.Tracer != nil {
		a.echo.Use(a.withSpan)
	}

	origins := newOrigins(config.AllowedOrigins, log)
	a.echo.Use(a.withAccessLog, a.withMetrics, withSecurityHeaders, a.withErrorResponse, origins.withOrigin,
		rejectExtraSlashes, withDecodedParams, a.withBodyLease)

	for _, r := range routes {
		handle := withRights(r)
		if !r.anyQuery {
			handle = withKnownQuery(r.query, handle)
		}
		if !r.noTimeout && !r.longLived {
			handle = withTimeout(handle)
		}

		a.echo.Add(r.method, r.path, handle)
	}

	return a, nil
}

// ServeHTTP handles one request. HEAD is routed as GET; net/http omits the body.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = headAsGet(r)
	}
	a.echo.ServeHTTP(w, r)
}
