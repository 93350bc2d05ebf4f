package origination

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/keylock"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Users is the directory of users and accounts.
type Users interface {
	// FindUser returns the user with the id.
	FindUser(ctx context.Context, id string) (identity.User, error)
	// SetClickToCallID stores the id of a user's click-to-call resource.
	SetClickToCallID(ctx context.Context, userID, id string) error
	// Tree returns the current account tree.
	Tree() *identity.Tree
}

// Event is an event of format trunkline.event of an account.
type Event struct {
	AccountID string
	Data      []byte
	State     State           // that the call has reached
	Trace     tracing.Carrier // of the request that placed the call
}

// Publisher publishes events on the channel in order. A nil error means that all of them are durable. It
// is safe for concurrent use.
type Publisher interface {
	Publish(ctx context.Context, events ...Event) error
}

// Deps are the dependencies of a Service.
type Deps struct {
	DB        *sqldb.DB
	Driver    Driver
	Users     Users
	Admission *Admission
	Publisher Publisher
	Audit     *audit.Log
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Tracer    *tracing.Tracer // nil disables tracing
}

// Service places calls and records their progress. It is safe for concurrent use.
type Service struct {
	cfg         Config
	driver      Driver
	users       Users
	admission   *Admission
	rows        rows
	keys        idempotencyKeys
	calls       *callStore
	userLocks   keylock.Locks // a user's first orders, which may create the user's click-to-call resource
	resourceIDs clickToCallResourceIDs
	audit       *audit.Log
	metrics     *metrics
	log         *slog.Logger
	tracer      *tracing.Tracer
	running     atomic.Bool // set while Run follows calls
	lapsedAt    time.Time   // when renewLease last found the lease expired; zero: what was lost is known
}

// New returns a service and migrates its tables.
func New(ctx context.Context, cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Admission == nil {
		return nil, errors.New("origination: no admission")
	}

	cfg = cfg.withDefaults()
	if err := deps.DB.Migrate(ctx, "origination", migrations); err != nil {
		return nil, err
	}

	writes := newLimitedWrites(deps.DB)
	s := &Service{
		cfg: cfg, driver: deps.Driver, users: deps.Users, admission: deps.Admission,
		rows: rows{deps.DB, writes, cfg.Node}, keys: idempotencyKeys{deps.DB, writes},
		resourceIDs: clickToCallResourceIDs{byUserID: map[string]string{}}, audit: deps.Audit, log: deps.Log,
		tracer: deps.Tracer,
	}
	s.calls = newCallStore(cfg.MaxCalls, s.rows, deps.Publisher, deps.Log)
	s.metrics = newMetrics(deps.Metrics, s.calls.size)
	s.calls.metrics = s.metrics
	s.calls.onEnded, s.calls.onLost = s.admission.Release, s.admission.Forget

	return s, nil
}
