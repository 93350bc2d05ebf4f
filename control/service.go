package control

import (
	"context"
	"embed"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	retention           = 24 * time.Hour         // the rows, and so the Idempotency-Keys
	storeTimeout        = 5 * time.Second        // for a change of an action's state
	confirmTimeout      = 10 * time.Second       // for the event: then an action is unconfirmed
	watchInterval       = 200 * time.Millisecond // between looks at open actions
	sweepInterval       = 5 * time.Second        // between looks for what a killed node has left
	rateWindow          = time.Minute
	maxActionsPerWindow = 60 // actions of a user in rateWindow
)

// Roster has the state of agents and calls.
type Roster interface {
	// FindEntries returns the entries of those of the keys that are an account's or of an account below it.
	FindEntries(ctx context.Context, account string, keys ...state.Key) (map[state.Key]*state.Entry, error)
	// SearchEntries returns the entries of an account, and of the accounts below it, that want admits. It costs more
	// than FindEntries: want sees all entries.
	SearchEntries(ctx context.Context, account string,
		want func(*state.Entry) bool) (map[state.Key]*state.Entry, error)
}

// Users finds users and accounts.
type Users interface {
	// FindUser returns the user with the id. Returns fault.KindNotFound for an unknown one. It does not
	// check who asks.
	FindUser(ctx context.Context, id string) (identity.User, error)
	// Tree returns the current account tree. It does no I/O.
	Tree() *identity.Tree
}

// Destinations decides to which numbers an account's calls may be transferred.
type Destinations interface {
	// Check returns fault.KindInvalid for what is no destination, and fault.KindForbidden for one that the
	// account's calls may not go to.
	Check(ctx context.Context, accountID, userID, destination string) error
}

// Publisher publishes an event of format trunkline.event.
type Publisher interface {
	// Publish returns nil once the event is durable. After an error Run publishes it again.
	Publish(ctx context.Context, accountID string, data []byte) error
}

// OwnCalls ends calls that Trunkline places itself (click to call); *origination.Service implements it.
type OwnCalls interface {
	// CheckCancel returns the account of a call that the caller may end. Returns fault.KindNotFound for one
	// that the caller does not see, fault.KindForbidden for another's, and fault.KindConflict for one that has
	// ended.
	CheckCancel(ctx context.Context, caller *identity.Principal, callID string) (accountID string, err error)
	// HangUp ends a call, on whatever node it is. It does not check who asks.
	HangUp(ctx context.Context, callID string) error
	// HasEnded reports whether a call has ended.
	HasEnded(ctx context.Context, callID string) (bool, error)
}

// Deps are the dependencies of a Service.
type Deps struct {
	DB           *sqldb.DB
	Roster       Roster
	Users        Users
	Limiter      identity.Limiter // counts actions
	Destinations Destinations
	Publisher    Publisher
	Nodes        Nodes
	OwnCalls     OwnCalls // nil: this process has none
	Audit        *audit.Log
	Metrics      prometheus.Registerer
	Log          *slog.Logger
	Now          func() time.Time // nil: time.Now
}

// Service takes actions and follows them to their end. It is safe for concurrent use.
type Service struct {
	db           *sqldb.DB
	roster       Roster
	users        Users
	limiter      identity.Limiter
	destinations Destinations
	publisher    Publisher
	nodes        Nodes
	ownCalls     OwnCalls // nil: this process has none
	audit        *audit.Log
	log          *slog.Logger
	now          func() time.Time
	metrics      *prometheus.CounterVec
	storedSignal chan struct{} // has one element after an action was stored: Run has something to follow
}

// New migrates the tables and returns the service.
func New(ctx context.Context, d Deps) (*Service, error) {
	if err := d.DB.Migrate(ctx, "control", migrations); err != nil {
		return nil, err
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Service{db: d.DB, roster: d.Roster, users: d.Users, limiter: d.Limiter, destinations: d.Destinations,
		publisher: d.Publisher, nodes: d.Nodes, ownCalls: d.OwnCalls, audit: d.Audit, log: d.Log, now: d.Now,
		metrics: newMetrics(d.Metrics), storedSignal: make(chan struct{}, 1)}, nil
}
