package sip

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// Handler handles incoming calls.
type Handler interface {
	// ServeInvite handles one call on a separate goroutine and returns when the call has been handled.
	// An INVITE without a final response is then refused. ctx ends when the caller cancels or the
	// server closes.
	ServeInvite(ctx context.Context, invite *Invite)
}

// Server is a SIP user agent and registrar.
type Server struct {
	Registrations *Registrations

	config  Config
	users   Authenticator
	routes  []route
	metrics *metrics
	log     *slog.Logger

	udp                *udpSocket
	tcp                *streamListener
	tls                *streamListener // nil without TLSListen
	boundAddr          netip.AddrPort
	advertisedHost     string // announced to peers
	advertisedPort     int
	advertisedTLSPort  int // equals advertisedPort if TLSListen is empty
	transport          *sipmsg.TransportLayer
	transactions       *sipmsg.TransactionLayer
	guard              *guard
	branches           branchSigner
	preparser          *preparser
	panics             *panics.Recoverer
	nonces             *nonces
	background         *tasks
	transactionCtx     context.Context // ends the transactions
	cancelTransactions context.CancelFunc
	handlerCtx         context.Context // ends the handlers; cancelled before transactionCtx
	cancelHandlers     context.CancelFunc

	mu       sync.Mutex
	dialogs  map[string]*Leg
	legCount int  // legs and unanswered INVITEs
	closing  bool // new calls are rejected
}

type route struct {
	prefix  string
	handler Handler
}

// New binds the sockets. Nothing is read before Run.
func New(config Config, users Authenticator, bindings Bindings, reg prometheus.Registerer,
	log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if users == nil || bindings == nil {
		return nil, errors.New("sip: users and bindings are required")
	}
	s := &Server{
		config: config.withDefaults(), users: users, metrics: newMetrics(reg), panics: panics.New(reg, log), log: log,
		dialogs: map[string]*Leg{},
	}
	s.Registrations = &Registrations{bindings: bindings, minExpires: s.config.MinExpires,
		maxContacts: s.config.Limits.MaxContacts, metrics: s.metrics, panics: s.panics, log: log}
	s.panics.InitMetrics(placeDatagram, placeParse, placeRequest, placeCall, placeSDP)
	var key [32]byte
	for _, k := range []*[32]byte{&key, &s.branches.key} {
		rand.Read(k[:]) // never fails
	}
	s.nonces = newNonces(key, s.config.NonceLifetime)
	s.guard = newGuard(s.config, &s.branches, s.metrics)
	s.preparser = newPreparser(s.panics, s.metrics)
	s.background = newTasks(s.panics)
	err := s.listen()
	if err != nil {
		return nil, err
	}
	s.advertisedHost, s.advertisedPort, err = s.config.announcedAddr(s.boundAddr)
	if err == nil {
		err = s.listenTLS()
	}
	if err != nil {
		return nil, errors.Join(err, s.udp.Close(), s.tcp.Close())
	}
	s.newStack()
	s.transactionCtx, s.cancelTransactions = context.WithCancel(context.Background())
	s.handlerCtx, s.cancelHandlers = context.WithCancel(s.transactionCtx)
	return s, nil
}

// bindAttempts is the number of attempts to find a port that is free for both UDP and TCP.
const bindAttempts = 10

// listen binds UDP and TCP to the same port.
func (s *Server) listen() error {
	for attempt := 1; ; attempt++ {
		packets, err := net.ListenPacket("udp", s.config.Listen)
		if err != nil {
			return fmt.Errorf("listening for SIP over UDP: %w", err)
		}
		udp := packets.(*net.UDPConn)
		bound, err := netip.ParseAddrPort(udp.LocalAddr().String())
		if err != nil {
			return errors.Join(fmt.Errorf("parsing the SIP address: %w", err), udp.Close())
		}
		tcp, err := net.Listen("tcp", bound.String())
		if err == nil {
			s.udp, s.boundAddr = &udpSocket{UDPConn: udp, guard: s.guard, preparser: s.preparser, log: s.log}, bound
			s.tcp = s.newStreamListener(tcp, nil)
			return nil
		}
		err = errors.Join(fmt.Errorf("listening for SIP over TCP: %w", err), udp.Close())
		if attempt == bindAttempts || !strings.HasSuffix(s.config.Listen, ":0") {
			return err
		}
	}
}

// listenTLS binds the TLS listener if one is configured.
func (s *Server) listenTLS() error {
	s.advertisedTLSPort = s.advertisedPort
	if s.config.TLSListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.config.TLSListen)
	if err != nil {
		return fmt.Errorf("listening for SIP over TLS: %w", err)
	}
	s.tls = s.newStreamListener(listener, s.config.TLS)
	s.advertisedTLSPort = listener.Addr().(*net.TCPAddr).Port
	return nil
}

// closeListeners closes the sockets.
func (s *Server) closeListeners() error {
	err := errors.Join(s.udp.Close(), s.tcp.Close())
	if s.tls != nil {
		err = errors.Join(err, s.tls.Close())
	}
	return err
}

// newStack creates the SIP stack. Its transactions receive a message after udpSocket.setSource.
func (s *Server) newStack() {
	stackLog := slog.New(stackLogger{metrics: s.metrics, log: s.log})
	s.transport = sipmsg.NewTransportLayer(net.DefaultResolver, sipmsg.NewParser(), s.config.DialTLS,
		sipmsg.WithTransportLayerLogger(stackLog), sipmsg.WithTransportLayerReadFilter(s.filterOutboundRead))
	s.transport.OnMessage(s.udp.setSource)
	address := s.udp.LocalAddr().String()
	socket := &sipmsg.UDPConnection{PacketConn: s.udp, PacketAddr: address, Listener: true}
	// Register the socket now: calls may be placed before the stack starts reading it.
	s.transport.Pool("udp").Add(address, socket)
	s.udp.peers = recentPeers{connections: s.transport.Pool("udp"), socket: socket, maxAddresses: maxPeers,
		minAge: minPeerAge, metrics: s.metrics}
	s.transactions = sipmsg.NewTransactionLayer(s.transport,
		sipmsg.WithTransactionLayerLogger(stackLog),
		sipmsg.WithTransactionLayerUnhandledResponseHandler(func(*sipmsg.Response) { s.metrics.strayResponses.Inc() }),
		sipmsg.WithTransactionLayerTerminateOnConnClose(),
	)
	s.transactions.OnRequest(s.dispatch)
}

// filterOutboundRead is the stack's read filter. It checks the connections that the stack has opened.
// Other connections have the local port of a listener and were checked by the sockets of this
// package.
func (s *Server) filterOutboundRead(from sipmsg.TransportReadProps, data []byte) ([]byte, error) {
	local, ok := from.LocalAddr.(*net.TCPAddr)
	if !ok || local.Port == int(s.boundAddr.Port()) || s.tls != nil && local.Port == s.advertisedTLSPort {
		return data, nil
	}
	if err := s.preparser.checkOutbound(local.String(), from.RemoteAddr.String(), data); err != nil {
		return nil, err
	}
	return data, nil
}

// closeStack ends the stack's transactions and connections.
func (s *Server) closeStack() error {
	s.transactions.Close()
	return s.transport.Close()
}

const userAgent = "Trunkline"

// Handle registers h for calls to users whose name begins with prefix. The longest matching prefix
// wins; "" matches all. It must be called before Run.
func (s *Server) Handle(prefix string, h Handler) {
	s.routes = append(s.routes, route{prefix, h})
	slices.SortStableFunc(s.routes, func(a, b route) int { return len(b.prefix) - len(a.prefix) })
}

// Addr returns the bound address.
func (s *Server) Addr() netip.AddrPort { return s.boundAddr }

// TLSPort returns the port of the TLS listener, or 0.
func (s *Server) TLSPort() int {
	if s.tls == nil {
		return 0
	}
	return s.advertisedTLSPort
}

// Host returns the host announced to peers.
func (s *Server) Host() string { return s.advertisedHost }

// Run serves until ctx ends. It then rejects new calls, sends a BYE on the remaining legs, and returns
// when those transactions are over, or after a few seconds.
func (s *Server) Run(ctx context.Context) error {
	var work sync.WaitGroup
	work.Go(func() { s.serveDatagrams(ctx) })
	work.Go(func() { s.logListenerError(s.transport.ServeTCP(s.tcp)) })
	if s.tls != nil {
		work.Go(func() { s.logListenerError(s.transport.ServeTLS(s.tls)) })
	}
	work.Go(func() { s.Registrations.sweepExpired(ctx) })
	<-ctx.Done()
	s.cancelHandlers()
	s.hangUpAll()
	settled := s.background.close()
	select {
	case <-settled:
	case <-time.After(settleTimeout):
	}
	s.cancelTransactions() // ends the remaining transactions
	<-settled
	// The stack opens a new socket for a response whose own socket was closed, and never closes it.
	// Wait until it has handled the messages it has read.
	s.guard.closed.Store(true)
	time.Sleep(stackDrainTime)
	closed := errors.Join(s.closeListeners(), s.closeStack())
	work.Wait()
	return errors.Join(closed, s.closeStack())
}

// stackDrainTime is longer than the time that the stack needs to handle a message that it has read.
const stackDrainTime = 30 * time.Millisecond

// settleTimeout is the timeout for the last transactions of calls.
const settleTimeout = 3 * time.Second

// logListenerError logs the error that ended a listener, unless Run has closed it.
func (s *Server) logListenerError(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.Error("SIP listener failed", "error", err)
	}
}

func (s *Server) hangUpAll() {
	s.mu.Lock()
	s.closing = true
	legs := slices.Collect(maps.Values(s.dialogs))
	s.mu.Unlock()
	for _, leg := range legs {
		leg.Hangup(NormalTemporaryFailure)
	}
}

// findHandler returns the handler of calls to a user, or nil.
func (s *Server) findHandler(user string) Handler {
	for _, r := range s.routes {
		if strings.HasPrefix(user, r.prefix) {
			return r.handler
		}
	}
	return nil
}

// reserveLeg reserves capacity for one leg and reports whether any was left; releaseLeg frees it.
func (s *Server) reserveLeg() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.legCount >= s.config.Limits.MaxCalls {
		return false
	}
	s.legCount++
	s.metrics.calls.Inc()
	return true
}

func (s *Server) releaseLeg() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.legCount--
	s.metrics.calls.Dec()
}
