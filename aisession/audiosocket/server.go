package audiosocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/aisession/streamed"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/setting"
	"trunkline/telephony/audio"
)

// Sessions opens AI sessions for calls that were announced, or whose UUID a dialplan signed.
type Sessions interface {
	// TakeAnnouncement removes and returns an announcement and its provider. A UUID that was not
	// announced may instead be a token that a dialplan signed with a provider's secret. The error
	// is fault.KindNotFound for any other UUID.
	TakeAnnouncement(ctx context.Context, id uuid.UUID) (aiprovider.Announcement, aiprovider.Provider, error)
	// Open connects to a request's provider and sends start. The caller must call Run or Close on
	// the session. The error is fault.KindLimited above a limit, fault.KindUnavailable if the
	// provider cannot be reached or the process is shutting down, and fault.KindRefused if the
	// provider refuses.
	Open(ctx context.Context, r aisession.Request) (*aisession.Session, error)
	// RunRecovered runs f for a call that has no session yet. It recovers, counts and logs a panic.
	RunRecovered(f func())
}

// Server accepts connections from Asterisk.
type Server struct {
	sessions Sessions
	listener net.Listener
	log      *slog.Logger
	slots    chan struct{}  // one token per connection; its capacity is the limit
	calls    sync.WaitGroup // goroutines of connections
}

const (
	helloTimeout = 5 * time.Second        // timeout for a message before the session: the UUID, the first audio
	rateTimeout  = 300 * time.Millisecond // time to wait for the first audio, which has the rate
	idleTimeout  = 60 * time.Second       // read timeout; Asterisk sends continuously
	writeTimeout = 5 * time.Second
	acceptPause  = 100 * time.Millisecond // pause after a failed accept
)

// New binds the listener.
func New(settings Settings, sessions Sessions, log *slog.Logger) (*Server, error) {
	if err := setting.Validate("aisession", settings); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", settings.Listen)
	if err != nil {
		return nil, fmt.Errorf("audiosocket: %w", err)
	}
	return &Server{sessions: sessions, listener: listener, log: log,
		slots: make(chan struct{}, settings.MaxConnections)}, nil
}

// Addr returns the listener's address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the listener of a Server that was not run.
func (s *Server) Close() error {
	err := s.listener.Close()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("audiosocket: %w", err)
	}
	return nil
}

// Run accepts connections until ctx ends, and returns when their sessions have ended.
func (s *Server) Run(ctx context.Context) error {
	defer s.calls.Wait()

	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()

	for {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
			s.admit(ctx, conn)
		case ctx.Err() != nil:
			return nil
		// Closed by Close and not by the end of ctx: Run cannot go on.
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("audiosocket: %w", err)
		default:
			s.log.WarnContext(ctx, "accepting an AudioSocket connection failed", "error", err)
			time.Sleep(acceptPause)
		}
	}
}

// admit serves a connection, or closes it at the limit.
func (s *Server) admit(ctx context.Context, conn net.Conn) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.log.WarnContext(ctx, "AudioSocket connection limit reached: connection closed")
		_ = conn.Close()
		return
	}

	s.calls.Go(func() {
		defer func() { <-s.slots }()
		defer func() { _ = conn.Close() }()
		s.sessions.RunRecovered(func() { s.serveOrRefuse(ctx, conn) })
	})
}

func (s *Server) serveOrRefuse(ctx context.Context, conn net.Conn) {
	if err := s.serve(ctx, conn); err != nil {
		s.log.InfoContext(ctx, "AudioSocket connection refused", "error", err)
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, _ = conn.Write(appendMessage(nil, kindHangup, nil)) // best effort: it is closed in any case
	}
}

// serve handles one call. An error means that the call was refused.
func (s *Server) serve(ctx context.Context, conn net.Conn) error {
	interrupt := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer interrupt()

	r := &reader{input: bufio.NewReader(conn)}
	id, err := readUUID(conn, r)
	if err != nil {
		return err
	}

	announced, provider, err := s.sessions.TakeAnnouncement(ctx, id)
	if err != nil {
		return err
	}

	kind, err := detectAudioKind(conn, r)
	if err != nil {
		return err
	}

	// From here on a shutdown does not end the reading: the service ends the session when it has drained.
	if !interrupt() {
		return ctx.Err()
	}

	opening, cancel := context.WithCancel(ctx)
	defer cancel()

	c := newCall(conn, streamed.NewCallSession(cancel), kind)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		c.ReadMessages(s.sessions.RunRecovered, func() bool { return c.handleNext(r) })
	}()

	err = s.serveSession(ctx, opening, c, newRequest(announced, provider, id, rates[kind]))
	c.sender.Close()
	_ = conn.SetDeadline(time.Now().Add(writeTimeout))
	_, _ = conn.Write(appendMessage(nil, kindHangup, nil)) // best effort: Asterisk may have closed the connection
	_ = conn.Close()
	<-reading

	return err
}

// serveSession opens the session and runs it until the call ends. opening is the context of Open, which the end of the
// call ends. The error is that of the opening.
func (s *Server) serveSession(ctx, opening context.Context, c *call, r aisession.Request) error {
	session, err := s.sessions.Open(opening, r)
	if err != nil {
		return err
	}

	c.SetSession(session)
	if opening.Err() != nil { // the call has ended, or the process is shutting down
		session.Close(aiprotocol.OriginatorCancel)
		return opening.Err()
	}

	session.Run(context.WithoutCancel(ctx), c)
	return nil
}

// readUUID reads the message with the call's UUID.
func readUUID(conn net.Conn, r *reader) (uuid.UUID, error) {
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return uuid.UUID{}, err
	}

	m, err := r.next()
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("reading the call's UUID: %w", err)
	}

	if m.kind != kindUUID || len(m.payload) != len(uuid.UUID{}) {
		return uuid.UUID{}, errors.New("the first message is not a UUID")
	}

	return uuid.UUID(m.payload), nil
}

// detectAudioKind waits up to rateTimeout for audio and returns its kind. The audio itself is dropped.
func detectAudioKind(conn net.Conn, r *reader) (kind byte, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(rateTimeout)); err != nil {
		return 0, err
	}

	if peeked, ok := r.input.(*bufio.Reader); ok {
		// Read only a complete header, so that a timeout does not split a message.
		header, err := peeked.Peek(headerSize)
		if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
			return kindSlin8, nil
		}
		if err != nil {
			return 0, fmt.Errorf("reading the first audio: %w", err)
		}

		_, known := rates[header[0]]
		if !known {
			return kindSlin8, nil
		}
	}

	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return 0, err
	}

	m, err := r.next()
	if err != nil {
		return 0, fmt.Errorf("reading the first audio: %w", err)
	}

	return m.kind, nil
}

func newRequest(a aiprovider.Announcement, p aiprovider.Provider, id uuid.UUID, rate int) aisession.Request {
	call := aiprotocol.Call{CallID: a.CallID, OtherLegCallID: a.OtherLegCallID}
	if call.CallID == "" {
		call.CallID = id.String()
	}
	return aisession.Request{
		Provider: p, Ingress: aisession.IngressAudioSocket, Call: call, Caller: a.CallerIDNumber,
		Callee: a.CalleeIDNumber,
		Format: audio.Format{Encoding: audio.PCM16, Rate: rate},
	}
}
