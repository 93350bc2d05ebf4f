package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	postgresMaxConns       = 16 // a node's share of a server's usual 100
	postgresMaxIdle        = 16
	postgresMaxIdleTime    = 5 * time.Minute
	postgresMaxLifetime    = 30 * time.Minute // so that connections move after a failover or to a balancer's new target
	postgresConnectTimeout = 5 * time.Second
	applicationName        = "trunkline"
	idleInTransaction      = "60000" // ms; releases the locks of a stuck node
)

// parsePostgres parses the URL. Its error never contains the URL, which has a password.
func parsePostgres(address string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("database: the URL is not a valid postgres:// URL")
	}
	return cfg, nil
}

func openPostgres(cfg Config) (*DB, error) {
	conn, err := connConfig(cfg.URL)
	if err != nil {
		return nil, err
	}

	var options []stdlib.OptionOpenDB
	if cfg.ReadURL != nil {
		options = append(options, stdlib.OptionBeforeConnect(func(_ context.Context, conn *pgx.ConnConfig) error {
			return useURL(conn, cfg.ReadURL)
		}))
	}

	pool := stdlib.OpenDB(*conn, options...)
	pool.SetMaxOpenConns(postgresMaxConns)
	pool.SetMaxIdleConns(postgresMaxIdle)
	pool.SetConnMaxIdleTime(postgresMaxIdleTime)
	pool.SetConnMaxLifetime(postgresMaxLifetime)

	return &DB{DB: pool, isPostgres: true}, nil
}

// connConfig parses the URL and sets what it leaves open.
func connConfig(address string) (*pgx.ConnConfig, error) {
	conn, err := parsePostgres(address)
	if err != nil {
		return nil, err
	}

	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = postgresConnectTimeout
	}

	setDefault(conn.RuntimeParams, "application_name", applicationName)
	setDefault(conn.RuntimeParams, "idle_in_transaction_session_timeout", idleInTransaction)
	return conn, nil
}

// useURL replaces the configuration of a connection by that of the current URL. While the URL cannot
// be read, as in the moment in which its file is replaced, the connection uses what it had.
func useURL(conn *pgx.ConnConfig, currentURL func() (string, error)) error {
	address, err := currentURL()
	if err != nil {
		return nil
	}

	current, err := connConfig(address)
	if err != nil {
		return err
	}

	*conn = *current
	return nil
}

func setDefault(params map[string]string, name, value string) {
	_, set := params[name]
	if !set {
		params[name] = value
	}
}

// SQLSTATE codes and classes, from PostgreSQL's appendix A.
const (
	stateSerialization    = "40001"
	stateDeadlock         = "40P01"
	stateUnique           = "23505"
	stateInvalidText      = "22021" // NUL or invalid UTF-8
	stateReadOnly         = "25006" // a standby answered: a failover is under way
	stateLockNotAvailable = "55P03"
)

func postgresState(err error) (state string, ok bool) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return "", false
	}
	return e.Code, true
}

func postgresBusy(state string) bool {
	return state == stateSerialization || state == stateDeadlock
}

func postgresUnavailable(state string) bool {
	switch state {
	case stateReadOnly, stateLockNotAvailable:
		return true
	}

	switch state[:min(2, len(state))] {
	case "08", // connection exception
		"28", "3D", // login refused, no such database: an operator may be changing them
		"53", // insufficient resources
		"57", // operator intervention
		"58": // system error
		return true
	}

	return postgresBusy(state)
}

// lostConnection reports whether err is a failure to reach a server, not an error that
// the server reported.
func lostConnection(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err)
}

// lockMigrations serializes the nodes that start at the same time; the lock ends with
// the transaction.
func lockMigrations(ctx context.Context, tx Execer, component string) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "trunkline/"+component)
	if err != nil {
		return fmt.Errorf("waiting for another node's migration: %w", err)
	}
	return nil
}
