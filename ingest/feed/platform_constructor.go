package feed

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// Deps holds the dependencies of a kind of platform. A kind's constructor is
//
//	func New(cfg feed.Config, deps feed.Deps) (feed.Platform, error)
//
// It opens no connection.
type Deps struct {
	Accounts Accounts
	Metrics  prometheus.Registerer // of the process; nil disables metrics
	Log      *slog.Logger
	Panics   *panics.Recoverer // of the goroutines that the platform starts; nil does not recover panics
}

// Constructor returns the platform of a feed.
type Constructor func(cfg Config, deps Deps) (Platform, error)
