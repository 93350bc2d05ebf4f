package app

import (
	"context"
	"time"

	"trunkline/internal/certificate"
	"trunkline/internal/selfcheck"
)

// newSelfCheck returns the checker of the backends, the disk of data_dir and the certificates that
// this process presents.
func (a *App) newSelfCheck() *selfcheck.Checker {
	database := selfcheck.Dependency{Name: "database", Advice: "check the server, and database.url",
		Ping: a.db.PingContext}
	if a.db.Postgres() {
		database.Clock = selfcheck.CompareClock(a.db.ReadClock)
	}

	redis := selfcheck.Dependency{Name: "redis",
		Advice: "check the server, and the addresses, password and tls of redis",
		Ping:   func(ctx context.Context) error { return a.redis.Ping(ctx).Err() }}

	if !a.settings.Redis.Embedded() {
		redis.Clock = selfcheck.CompareClock(
			func(ctx context.Context) (time.Time, error) { return a.redis.Time(ctx).Result() })
	}

	kafka := selfcheck.Dependency{Name: "kafka", Advice: "check the cluster, and kafka.brokers", Ping: a.cluster.Ping,
		Clock: a.cluster.ClockAhead,
		// during the start, awaitBackend logs the backends
		Silent: func() bool { return a.health.unreadyReason() != "" }}

	var presented []selfcheck.Certificate
	if a.certificate != nil {
		presented = append(presented,
			selfcheck.Certificate{Setting: a.certificate.Setting, File: a.certificate.CertFile,
				Load: a.certificate.Reload})
	}

	for _, f := range a.settings.Files() {
		if f.IsCertificate() && f.Setting != "tls.cert_file" {
			pair := certificate.Pair{Setting: f.Setting, CertFile: f.Path, KeyFile: f.KeyPath}
			presented = append(presented, selfcheck.Certificate{Setting: f.Setting, File: f.Path, Load: pair.Load})
		}
	}

	return selfcheck.New(selfcheck.Config{
		Dependencies: append([]selfcheck.Dependency{database, redis, kafka}, a.stores...), Certificates: presented,
		DataDir: a.dataDir(),
	}, a.registry, a.log)
}
