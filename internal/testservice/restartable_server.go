package testservice

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

// Server is a Redis, PostgreSQL, RabbitMQ or S3 store for one test, always on the same port.
type Server struct {
	Addr string // host:port
	URL  string

	origin  string // path of its program
	dir     string // its data and its log, removed by close
	command command
	probe   func(context.Context) error // returns nil when it answers
	proc    *process                    // nil before launch
}

// Kill kills the server with SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	must(t, s.proc.killAndWait())
}

// Start starts the server again and returns when it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	must(t, s.launch(t.Context()))
}

// Pause stops the server (SIGSTOP): connections stay open without answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	must(t, s.proc.signal(syscall.SIGSTOP))
}

// Resume continues a paused server.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	must(t, s.proc.signal(syscall.SIGCONT))
}

func (s *Server) launch(ctx context.Context) error {
	var err error
	s.proc, err = launch(s.command)
	if err != nil {
		return err
	}
	return s.proc.await(ctx, s.probe)
}

// close stops the server and removes its data.
func (s *Server) close() error {
	var stopErr error
	if s.proc != nil {
		stopErr = s.proc.stopAndWait()
	}
	return errors.Join(stopErr, os.RemoveAll(s.dir))
}

// startOwn starts a server that ends with the test.
func startOwn(t testing.TB, prepare func(context.Context) (*Server, error)) *Server {
	t.Helper()
	skipIfShort(t)
	server, err := prepare(t.Context())
	skipOrFail(t, err)
	t.Cleanup(func() { must(t, server.close()) })
	must(t, server.launch(t.Context()))
	return server
}

// startShared starts a server that all tests share.
func startShared(ctx context.Context, prepare func(context.Context) (*Server, error),
	address func(*Server) string) (*service, error) {
	server, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	if err := server.launch(ctx); err != nil {
		return nil, errors.Join(err, server.close())
	}
	return &service{address: address(server), origin: server.origin, stop: server.close}, nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("testservice: %v", err)
	}
}
