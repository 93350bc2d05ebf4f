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

// Users are the users and the tree of accounts.
type Users interface {
	User(ctx context.Context, id string) (identity.User, error)
	SetClickToCallID(ctx context.Context, userID, id string) error
	Tree() *identity.Tree
}

// Limiter counts a user's originations. It answers how long to wait when one
// was more than allowed, else 0.
type Limiter interface {
	Fail(ctx context.Context, limits ...identity.Limit) time.Duration
}

// Event is one of our own events (format trunkline.event) of an account.
type Event struct {
	AccountID string
	Data      []byte
	State     State           // that it tells of
	Trace     tracing.Carrier // what it is part of
}

// Publisher sends events to the channel, in their order; nil means that all of
// them are durable.
type Publisher interface {
	Publish(ctx context.Context, events ...Event) error
}

// Deps are what the room works with.
type Deps struct {
	DB        *sqldb.DB
	Driver    Driver
	Users     Users
	Limiter   Limiter
	Publisher Publisher
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Tracer    *tracing.Tracer // nil: tracing is off
}

// Service places calls and knows how far they have come. It is safe for
// concurrent use.
type Service struct {
	cfg     Config
	driver  Driver
	users   Users
	limiter Limiter
	rows    rows
	keys    keys
	book    *book
	first   *firsts
	metrics *metrics
	log     *slog.Logger
	tracer  *tracing.Tracer
	running atomic.Bool // calls are followed
}

// New brings the tables up to date.
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
		rows: rows{deps.DB, cfg.Node}, first: newFirsts(), log: deps.Log, tracer: deps.Tracer,
	}
	s.book = newBook(cfg.MaxCalls, s.rows, deps.Publisher, deps.Log)
	s.keys = keys{deps.DB, s.book.together}
	s.metrics = newMetrics(deps.Metrics, s.book.size)
	s.book.metrics = s.metrics
	return s, nil
}
