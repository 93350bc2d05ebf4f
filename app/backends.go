package app

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/app/backend"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/selfcheck"
	"trunkline/internal/sqldb"
)

// openDatabase opens the database, and waits for it where it is a server.
func openDatabase(ctx context.Context, p *process) (db *sqldb.DB, err error) {
	err = p.awaitBackend(ctx, "the database", "check database.url, and that the server is up and accepts our login",
		func(ctx context.Context) (err error) {
			db, err = backend.OpenDatabase(ctx, p.settings, p.log)
			return err
		}, func(err error) bool {
			return p.settings.Database.URL != "" && fault.KindOf(err) == fault.KindUnavailable
		})
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}

	p.lifecycle.addClose("database", func(context.Context) error { return db.Close() })
	return db, nil
}

func openRedis(p *process) (redis.UniversalClient, error) {
	client, closeRedis, err := backend.OpenRedis(p.settings, p.log)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}

	p.lifecycle.addClose("redis", func(context.Context) error { return closeRedis() })
	return client, nil
}

func openKafka(ctx context.Context, p *process, client redis.UniversalClient) (*kafka.Cluster, error) {
	cluster, closeKafka, err := backend.OpenKafka(ctx, p.settings,
		&backend.Liveness{Client: client, Prefix: p.settings.Redis.KeyPrefix}, p.registry, p.log)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, listenError("kafka.embedded_listen", err)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}

	p.health.broker.Store(cluster)
	p.lifecycle.addClose("kafka", func(context.Context) error { return closeKafka() })
	return cluster, nil
}

const (
	awaitRetryInterval = 2 * time.Second
	awaitLogInterval   = 30 * time.Second // between log lines
)

// awaitBackend calls try until it succeeds or returns an error that is not temporary. While it
// waits, it logs the backend and the advice every awaitLogInterval, and readiness names the backend.
func (p *process) awaitBackend(ctx context.Context, backend, advice string, try func(context.Context) error,
	temporary func(error) bool) error {
	var began, reported time.Time
	for {
		err := try(ctx)
		if err == nil {
			if !began.IsZero() {
				p.log.Info(backend+" is available", "after", time.Since(began).Round(time.Millisecond))
			}
			return nil
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !temporary(err) {
			return err
		}

		now := time.Now()
		if began.IsZero() {
			began = now
		}

		p.health.setWaiting(backend)
		if reported.IsZero() || now.Sub(reported) >= awaitLogInterval {
			reported = now
			p.log.Warn("waiting for "+backend+": "+selfcheck.Advice(err, advice), "error", selfcheck.OneLine(err))
		}
		if !retry.Sleep(ctx, awaitRetryInterval) {
			return ctx.Err()
		}
	}
}
