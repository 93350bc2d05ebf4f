package testservice

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"trunkline/internal/freeport"
)

const postgresUser = "trunkline"

func localPostgres(ctx context.Context, _ stopPolicy) (*service, error) {
	return startShared(ctx, newPostgres, func(s *Server) string { return s.URL })
}

// Postgres returns the URL of a new database on a shared server. The database is dropped at the
// end of the test.
func Postgres(t testing.TB) string {
	t.Helper()
	server := openShared(t, sharedPostgres).address
	name := strings.ReplaceAll(strings.TrimSuffix(Prefix(t), "-"), "-", "_")
	must(t, execute(t.Context(), server, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()))

	t.Cleanup(func() {
		// the test's context has ended, so the drop has its own timeout
		must(t, execute(context.Background(), server, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"))
	})

	databaseURL, err := url.Parse(server)
	must(t, err)
	databaseURL.Path = "/" + name

	return databaseURL.String()
}

// OwnPostgres starts a PostgreSQL for this test, with one empty database. After a kill and a
// restart it has all committed data.
func OwnPostgres(t testing.TB) *Server {
	t.Helper()
	return startOwn(t, newPostgres)
}

// DurablePostgres is OwnPostgres with every commit synced to disk, as in production: for
// benchmarks.
func DurablePostgres(t testing.TB) *Server {
	t.Helper()
	return startOwn(t, func(ctx context.Context) (*Server, error) {
		server, err := newPostgres(ctx)
		if err == nil {
			args := &server.command.args
			*args = slices.DeleteFunc(*args, func(arg string) bool { return arg == noSync || arg == noFullPages })
		}
		return server, err
	})
}

// Without these, data is lost only if the machine fails, not if the process is killed.
const noSync, noFullPages = "-cfsync=off", "-cfull_page_writes=off"

func newPostgres(ctx context.Context) (*Server, error) {
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return nil, err
	}

	postgres, err := postgresProgram("postgres")
	if err != nil {
		return nil, err
	}

	account, err := postgresAccount()
	if err != nil {
		return nil, err
	}

	dir, err := newFolder("postgres")
	if err != nil {
		return nil, err
	}

	ports, err := freeport.Find(1)
	if err == nil {
		err = initPostgres(ctx, initdb, dir, account)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	address := hostPort(ports[0])
	serverURL := postgresURL(address)
	return &Server{
		Addr: address, URL: serverURL, dir: dir, origin: postgres,
		command: command{
			name: "postgres", dir: dir, user: account,
			stopSignal: syscall.SIGQUIT, // fast, but releases the shared memory
			args: []string{
				postgres, "-D", filepath.Join(dir, "data"), "-p", strconv.Itoa(ports[0]),
				"-c", "listen_addresses=" + listenHost(), "-c", "unix_socket_directories=" + dir,
				"-c", "max_connections=200", "-c", "shared_buffers=32MB",
				noSync, noFullPages,
			},
		},
		probe: func(ctx context.Context) error { return execute(ctx, serverURL, "SELECT 1") },
	}, nil
}

func initPostgres(ctx context.Context, initdb, dir string, account *syscall.Credential) error {
	cmd := exec.CommandContext(ctx, initdb, "-D", filepath.Join(dir, "data"),
		"-U", postgresUser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}

	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return fmt.Errorf("giving PostgreSQL its folder: %w", err)
		}
	}

	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("initializing PostgreSQL: %w: %s", err, output)
	}

	if listenHost() == loopbackHost {
		return nil
	}

	access := filepath.Join(dir, "data", "pg_hba.conf")
	if err := os.WriteFile(access, []byte("host all all all trust\n"), 0o644); err != nil {
		return fmt.Errorf("opening PostgreSQL to the namespace: %w", err)
	}

	return nil
}

func postgresURL(address string) string {
	u := url.URL{Scheme: "postgres", User: url.User(postgresUser), Host: address, Path: "/postgres",
		RawQuery: "sslmode=disable"}
	return u.String()
}

// postgresProgram finds a program of PostgreSQL in the folders of Debian, the newest version first,
// then in PATH. Debian's folders are not in PATH, but its pg_ctlcluster is: where PATH lacks it,
// PostgreSQL counts as missing.
func postgresProgram(name string) (string, error) {
	_, err := exec.LookPath("pg_ctlcluster")
	if err == nil {
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if err != nil {
			return "", fmt.Errorf("looking for PostgreSQL: %w", err)
		}

		if len(found) > 0 {
			return slices.Max(found), nil
		}
	}

	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: looking for PostgreSQL: %w", errMissing, err)
	}

	return path, nil
}

// postgresAccount returns the user that the server runs as, because it refuses to run as root.
func postgresAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}

	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: looking for a user to run PostgreSQL as: %w", errMissing, err)
	}

	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the id of user postgres: %w", err)
	}

	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the group of user postgres: %w", err)
	}

	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// execute runs one statement on a new connection.
func execute(ctx context.Context, server, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
