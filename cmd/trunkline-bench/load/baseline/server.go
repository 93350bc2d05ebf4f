package baseline

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"trunkline/internal/wsframe"
)

// Config configures a Server.
type Config struct {
	Coalesce bool        // all queued frames in one write
	TLS      *tls.Config // nil: plain
	Writers  int         // writing goroutines, which share the sockets evenly
}

// Server sends each message to all sockets of its stream.
type Server struct {
	cfg     Config
	writers []*socketWriter
	wg      sync.WaitGroup

	mu         sync.Mutex
	nextWriter int // counts sockets: the writers get them in turn
}

// New returns a server, which Serve runs.
func New(cfg Config) (*Server, error) {
	if cfg.Writers < 1 {
		return nil, errors.New("baseline: at least one writer is needed")
	}
	s := &Server{cfg: cfg}
	for range cfg.Writers {
		s.writers = append(s.writers, newSocketWriter(cfg.Coalesce))
	}
	return s, nil
}

// Serve accepts sockets from listener until ctx ends, and then closes them.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	for _, w := range s.writers {
		s.wg.Go(func() { w.run(ctx) })
	}

	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close()
		for _, w := range s.writers {
			w.closeAll()
		}
	})
	defer stop()
	// Runs before stop, which would otherwise keep the sockets from being closed at the end of ctx.
	defer s.wg.Wait()

	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}

		s.wg.Go(func() { s.acceptClient(conn) })
	}
}

// acceptClient performs the handshake and passes the socket to a writer. It closes the connection if
// the handshake fails.
func (s *Server) acceptClient(conn net.Conn) {
	if s.cfg.TLS != nil {
		conn = tls.Server(conn, s.cfg.TLS)
	}

	stream, err := handshake(conn)
	if err != nil {
		_ = conn.Close()
		return
	}

	s.mu.Lock()
	w := s.writers[s.nextWriter%len(s.writers)]
	s.nextWriter++
	s.mu.Unlock()

	w.add(stream, conn)
}

// Send sends a message to every socket of a stream. It blocks while writers are far behind, and
// returns false if ctx ended first.
func (s *Server) Send(ctx context.Context, stream int, message []byte) bool {
	frame := frame{stream: stream, bytes: append(wsframe.AppendHeader(nil, wsframe.Text, len(message)), message...)}
	for _, w := range s.writers {
		select {
		case w.frames <- frame:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
