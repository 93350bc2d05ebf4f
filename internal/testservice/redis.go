package testservice

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"trunkline/internal/freeport"
)

// Redis returns the host:port of a shared Redis; name keys with Prefix, and never flush it.
func Redis(t testing.TB) string {
	t.Helper()
	return openShared(t, sharedRedis).address
}

func localRedis(ctx context.Context, _ stopPolicy) (*service, error) {
	return startShared(ctx, func(context.Context) (*Server, error) { return newRedis() },
		func(s *Server) string { return s.Addr })
}

// OwnRedis starts a redis-server for this test. It is not persistent: empty after a kill and a
// restart.
func OwnRedis(t testing.TB) *Server {
	t.Helper()
	return startOwn(t, func(context.Context) (*Server, error) { return newRedis() })
}

// OwnSecureRedis starts a redis-server for this test, with further arguments. It requires TLS
// with a client certificate of ca, and the user app with password "secret".
func OwnSecureRedis(t testing.TB, ca *CA, arguments ...string) *Server {
	t.Helper()
	cert, key := ca.Pair(t, "redis")
	return startOwn(t, func(context.Context) (*Server, error) {
		server, err := newRedis(
			append([]string{"--user", "default", "off", "--user", "app", "on", ">secret", "~*", "&*", "+@all",
				"--port", "0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.File},
				arguments...)...)
		if err != nil {
			return nil, err
		}

		_, port, err := net.SplitHostPort(server.Addr)
		if err != nil {
			return nil, err
		}

		server.command.args = append(server.command.args, "--tls-port", port)
		server.probe = func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Addr)
			if err != nil {
				return err
			}
			return conn.Close()
		}

		return server, nil
	})
}

// newRedis prepares a redis-server with further arguments.
func newRedis(arguments ...string) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: looking for Redis: %w", errMissing, err)
	}

	dir, err := newFolder("redis")
	if err != nil {
		return nil, err
	}

	ports, err := freeport.Find(1)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	address := hostPort(ports[0])
	return &Server{
		Addr: address, URL: "redis://" + address, dir: dir,
		origin: binary,
		command: command{name: "redis", dir: dir, stopSignal: syscall.SIGKILL, args: append([]string{
			binary, "--port", strconv.Itoa(ports[0]), "--bind", listenHost(), "--protected-mode", "no",
			"--save", "", "--appendonly", "no", "--daemonize", "no",
		}, arguments...)},
		probe: func(ctx context.Context) error { return pingRedis(ctx, address) },
	}, nil
}

func pingRedis(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()

	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}

	_, err = conn.Write([]byte("PING\r\n"))
	if err != nil {
		return err
	}

	response, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}

	response = strings.TrimSpace(response)
	if response != "+PONG" {
		return fmt.Errorf("it answers %q", response)
	}

	return nil
}
