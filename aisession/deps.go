package aisession

import (
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/aiprovider"
	"trunkline/internal/netguard"
	"trunkline/internal/redisclient"
	"trunkline/internal/tracing"
)

// Providers finds configured providers and guards connections to them.
type Providers interface {
	// Open returns a provider of any account with its headers unsealed, for a connection to it. It
	// costs one database query. The error is fault.KindNotFound if there is no such provider.
	Open(ctx context.Context, id string) (aiprovider.Provider, error)
	// Guard returns the guard for connections to the provider.
	Guard(aiprovider.Provider) netguard.Guard
}

// Publisher publishes events of format trunkline.event on an account's channel. A nil error means that
// the event is durable.
type Publisher interface {
	// Publish publishes one event of the account, in JSON.
	Publish(ctx context.Context, accountID string, data []byte) error
}

// SessionLeases counts an account's sessions in the cluster.
type SessionLeases interface {
	// Acquire adds a session and returns false if the account has max already.
	Acquire(ctx context.Context, accountID, session string, max int) (bool, error)
	// Renew extends the leases of sessions, given as account by session. A lease that is not renewed
	// expires after leaseTTL.
	Renew(ctx context.Context, accountBySession map[string]string) error
	// Release ends the lease of a session. One that does not exist is no error.
	Release(ctx context.Context, accountID, session string) error
}

// Deps has the dependencies of a Service.
type Deps struct {
	Providers     Providers
	Publisher     Publisher
	Announcements *RedisAnnouncements
	Leases        SessionLeases                           // not used without Settings.MaxPerAccount
	Platform      Platform                                // nil: calls that only bring audio cannot be transferred
	CallNodes     *redisclient.HolderRequests[CallUpdate] // nil: this node is the only one
	FormatE164    func(accountID, number string) string   // formats a number for the provider; nil leaves it unchanged
	TLS           *tls.Config                             // for connections to providers; nil uses the system's CAs
	Metrics       prometheus.Registerer
	Log           *slog.Logger
	Tracer        *tracing.Tracer // nil disables tracing
}
