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

// Config is the configuration of a Service. New replaces zero values by the defaults
// named here, where zero has no meaning of its own.
type Config struct {
	MaxSessions    int           // on this node; 0: no limit
	MaxPerAccount  int           // in the cluster; 0: no limit
	ConnectTimeout time.Duration // of one try to connect, handshake included; 5 s
	GiveUp         time.Duration // how long a provider may be away; 10 s
	SilenceTimeout time.Duration // how long a provider may send no audio; 0: as long as it likes
	PlayoutLimit   time.Duration // how much audio of a provider waits at most; 5 min
	PlayoutLead    time.Duration // how much of it waits at least before it is played, if it comes so slowly; 40 ms, negative: none
	DrainLimit     time.Duration // how long sessions may go on when the process ends; 10 s
	AnnouncedFor   time.Duration // how long an announced call is waited for; 2 min
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

// Validate says what is wrong with the configuration.
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

// Publisher sends one of our own events (format trunkline.event) of an account
// to the channel; nil means that it is durable.
type Publisher interface {
	Publish(ctx context.Context, accountID string, data []byte) error
}

// Announcements keep calls that will come, for whichever node they come to.
type Announcements interface {
	// Put says false when the UUID is announced already.
	Put(ctx context.Context, a aiprovider.Announcement, life time.Duration) (bool, error)
	// Take gives an announcement once; false when there is none.
	Take(ctx context.Context, uuid string) (aiprovider.Announcement, bool, error)
}

// SessionLeases count an account's sessions in the cluster.
type SessionLeases interface {
	// Acquire says false when the account has max already.
	Acquire(ctx context.Context, accountID, session string, max int) (bool, error)
	// Renew extends the leases of sessions; one that is not renewed expires after
	// leaseTTL.
	Renew(ctx context.Context, accounts map[string]string) error // by session
	Release(ctx context.Context, accountID, session string) error
}

// Deps are the dependencies of a Service.
type Deps struct {
	Providers     Providers
	Publisher     Publisher
	Announcements Announcements
	Leases        SessionLeases
	E164          func(accountID, number string) string // writes a number as a provider gets it; nil: as it was given
	Authorities   *tls.Config                           // to verify providers with; nil: the system's
	Metrics       prometheus.Registerer
	Log           *slog.Logger
	Tracer        *tracing.Tracer // nil: tracing is off
}
