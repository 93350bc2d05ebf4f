package aisession

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/aiprovider"
	"trunkline/internal/tracing"
)

// Config is the configuration of a Service. New replaces zero values with the defaults named here,
// unless zero has a meaning of its own.
type Config struct {
	MaxSessions    int           // on this node; 0: no limit
	MaxPerAccount  int           // in the cluster; 0: no limit
	ConnectTimeout time.Duration // timeout of one connection attempt including the handshake; default 5 s
	GiveUp         time.Duration // how long reconnecting is tried; default 10 s
	SilenceTimeout time.Duration // how long a provider may send no audio; 0: no limit
	PlayoutLimit   time.Duration // limit of provider audio waiting for playback; default 5 min
	PlayoutLead    time.Duration // audio to collect before playback starts, if it arrives slowly; default 40 ms, negative: none
	DrainLimit     time.Duration // how long sessions may continue at shutdown; default 10 s
	AnnouncedFor   time.Duration // how long an announcement is kept; default 2 min
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value *time.Duration
		then  time.Duration
	}{
		{&c.ConnectTimeout, 5 * time.Second}, {&c.GiveUp, 10 * time.Second}, {&c.PlayoutLimit, 5 * time.Minute},
		{&c.PlayoutLead, 40 * time.Millisecond}, {&c.DrainLimit, 10 * time.Second}, {&c.AnnouncedFor, 2 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.then
		}
	}
	c.PlayoutLead = max(c.PlayoutLead, 0)
	return c
}

// Validate checks c.
func (c Config) Validate() error {
	if c.MaxSessions < 0 || c.MaxPerAccount < 0 {
		return errors.New("aisession: a limit is negative")
	}
	for _, d := range []time.Duration{c.ConnectTimeout, c.GiveUp, c.SilenceTimeout, c.PlayoutLimit, c.DrainLimit, c.AnnouncedFor} {
		if d < 0 {
			return errors.New("aisession: a duration is negative")
		}
	}
	return nil
}

// Providers finds configured providers and guards connections to them.
type Providers interface {
	Open(ctx context.Context, id string) (aiprovider.Provider, error)
	Guard(aiprovider.Provider) aiprovider.Guard
}

// Publisher publishes events of format trunkline.event on an account's channel. A nil error means that
// the event is durable.
type Publisher interface {
	Publish(ctx context.Context, accountID string, data []byte) error
}

// Announcements stores announced calls for all nodes.
type Announcements interface {
	// Put creates an announcement and returns false if the UUID exists.
	Put(ctx context.Context, a aiprovider.Announcement, life time.Duration) (bool, error)
	// Take deletes and returns an announcement. It returns false if there is none.
	Take(ctx context.Context, uuid string) (aiprovider.Announcement, bool, error)
}

// SessionLeases counts an account's sessions in the cluster.
type SessionLeases interface {
	// Acquire adds a session and returns false if the account has max already.
	Acquire(ctx context.Context, accountID, session string, max int) (bool, error)
	// Renew extends the leases of sessions, given as account by session. A lease that is not renewed
	// expires after leaseTTL.
	Renew(ctx context.Context, accounts map[string]string) error
	Release(ctx context.Context, accountID, session string) error
}

// Deps has the dependencies of a Service.
type Deps struct {
	Providers     Providers
	Publisher     Publisher
	Announcements Announcements
	Leases        SessionLeases
	E164          func(accountID, number string) string // formats a number for the provider; nil leaves it unchanged
	Authorities   *tls.Config                           // CAs of provider certificates; nil: the system's
	Metrics       prometheus.Registerer
	Log           *slog.Logger
	Tracer        *tracing.Tracer // nil disables tracing
}
