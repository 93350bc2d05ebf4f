package origination

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/identity"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Users is the directory of users and accounts.
type Users interface {
	User(ctx context.Context, id string) (identity.User, error)
	SetClickToCallID(ctx context.Context, userID, id string) error
	Tree() *identity.Tree
}

// Limiter counts a user's originations. It returns 0, or the time to wait if the limit is exceeded.
type Limiter interface {
	Fail(ctx context.Context, limits ...identity.Limit) time.Duration
}

// Event is an event of format trunkline.event of an account.
type Event struct {
	AccountID string
	Data      []byte
	State     State           // that the call has reached
	Trace     tracing.Carrier // of the request that placed the call
}

// Publisher publishes events on the channel in order. A nil error means that all of them are durable.
type Publisher interface {
	Publish(ctx context.Context, events ...Event) error
}

// Deps are the dependencies of a Service.
type Deps struct {
	DB        *sqldb.DB
	Driver    Driver
	Users     Users
	Limiter   Limiter
	Publisher Publisher
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Tracer    *tracing.Tracer // nil disables tracing
}

// Service places calls and records their progress. It is safe for concurrent use.
type Service struct {
	cfg       Config
	driver    Driver
	users     Users
	limiter   Limiter
	rows      rows
	keys      keys
	calls     *callStore
	userLocks *perUserLock
	metrics   *metrics
	log       *slog.Logger
	tracer    *tracing.Tracer
	running   atomic.Bool // set while Run follows calls
}

// New returns a service and migrates its tables.
func New(ctx context.Context, cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := deps.DB.Migrate(ctx, "origination", files); err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, driver: deps.Driver, users: deps.Users, limiter: deps.Limiter,
		rows: rows{deps.DB, cfg.Node}, userLocks: newPerUserLock(), log: deps.Log, tracer: deps.Tracer,
	}
	s.calls = newCallStore(cfg.MaxCalls, s.rows, deps.Publisher, deps.Log)
	s.keys = keys{deps.DB, s.calls.inNextTransaction}
	s.metrics = newMetrics(deps.Metrics, s.calls.size)
	s.calls.metrics = s.metrics
	return s, nil
}
