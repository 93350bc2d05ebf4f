package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/internal/selfcheck"
)

// newSelfCheck returns the checker of the backends, the disk of data_dir and the certificates that
// this process presents.
func (a *App) newSelfCheck() *selfcheck.Checker {
	database := selfcheck.Dependency{Name: "database", Advice: "check the server, and database.url", Ping: a.db.PingContext}
	if a.db.Postgres() {
		database.Clock = a.databaseClock
	}
	redis := selfcheck.Dependency{Name: "redis", Advice: "check the server, and the addresses, password and tls of redis",
		Ping: func(ctx context.Context) error { return a.redis.Ping(ctx).Err() }}
	if !a.settings.Redis.Embedded() {
		redis.Clock = a.redisClock
	}
	kafka := selfcheck.Dependency{Name: "kafka", Advice: "check the cluster, and kafka.brokers", Ping: a.cluster.Ping, Clock: a.kafkaClock,
		Silent: func() bool { return a.health.unreadyReason() != "" }} // during the start, awaitBackend logs the backends
	var presented []selfcheck.Certificate
	if a.certs != nil {
		presented = append(presented, selfcheck.Certificate{Setting: a.certs.key, File: a.certs.certFile, Load: a.certs.current})
	}
	for _, p := range certificatePairs(a.settings) {
		if p.key != "tls.cert_file" {
			presented = append(presented, selfcheck.Certificate{Setting: p.key, File: p.certFile, Load: p.load})
		}
	}
	return selfcheck.New(selfcheck.Config{
		Dependencies: []selfcheck.Dependency{database, redis, kafka}, Certificates: presented, DataDir: a.settings.DataDir, MinFree: uint64(a.settings.DiskMinFree),
	}, a.registry, a.log)
}

func (a *App) databaseClock(ctx context.Context) (ahead time.Duration, err error) {
	var serverTime time.Time
	sent := time.Now()
	if err := a.db.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&serverTime); err != nil {
		return 0, fmt.Errorf("reading the database's clock: %w", err)
	}
	return selfcheck.ClockOffset(sent, serverTime, time.Now()), nil
}

func (a *App) redisClock(ctx context.Context) (ahead time.Duration, err error) {
	sent := time.Now()
	serverTime, err := a.redis.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("reading Redis's clock: %w", err)
	}
	return selfcheck.ClockOffset(sent, serverTime, time.Now()), nil
}

// kafkaClock compares our clock with the timestamps of this node's own records.
func (a *App) kafkaClock(context.Context) (ahead time.Duration, err error) {
	ahead, at := a.cluster.ClockAhead()
	if at.IsZero() {
		return 0, errors.New("no broker has acknowledged a record yet")
	}
	return ahead, nil
}
