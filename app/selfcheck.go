package app

import (
	"context"
	"time"

	"trunkline/internal/certificate"
	"trunkline/internal/selfcheck"
)

// newSelfCheck returns the checker of the backends, the disk of data_dir and the certificates that
// this process presents. stores are further backends.
func newSelfCheck(b *base, stores []selfcheck.Dependency) *selfcheck.Checker {
	database := selfcheck.Dependency{Name: "database", Advice: "check the server, and database.url",
		Ping: b.db.PingContext}
	if b.db.Postgres() {
		database.Clock = selfcheck.CompareClock(b.db.ReadClock)
	}

	redis := selfcheck.Dependency{Name: "redis",
		Advice: "check the server, and the addresses, password and tls of redis",
		Ping:   func(ctx context.Context) error { return b.redis.Ping(ctx).Err() }}

	if !b.settings.Redis.Embedded() {
		redis.Clock = selfcheck.CompareClock(
			func(ctx context.Context) (time.Time, error) { return b.redis.Time(ctx).Result() })
	}

	kafka := selfcheck.Dependency{Name: "kafka", Advice: "check the cluster, and kafka.brokers", Ping: b.cluster.Ping,
		Clock: b.cluster.ClockAhead,
		// during the start, awaitBackend logs the backends
		Silent: func() bool { return b.health.unreadyReason() != "" }}

	var presented []selfcheck.Certificate
	if b.certificate != nil {
		presented = append(presented,
			selfcheck.Certificate{Setting: b.certificate.CertSetting, File: b.certificate.CertFile,
				Load: b.certificate.Reload})
	}

	for _, f := range b.settings.Files() {
		if f.IsCertificate() && f.Setting != "tls.cert_file" {
			pair := certificate.Pair{CertSetting: f.Setting, CertFile: f.Path, KeyFile: f.KeyPath}
			presented = append(presented, selfcheck.Certificate{Setting: f.Setting, File: f.Path, Load: pair.Load})
		}
	}

	return selfcheck.New(selfcheck.Config{
		Dependencies: append([]selfcheck.Dependency{database, redis, kafka}, stores...), Certificates: presented,
		DataDir: b.dataDir(),
	}, b.registry, b.log)
}
