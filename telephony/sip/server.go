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
	config   Config
	users    Authenticator
	bindings Bindings
	devices  []Devices
	routes   []route
	metrics  *metrics
	log      *slog.Logger

	udp            *datagrams
	tcp            *connections
	tls            *connections // nil without TLSListen
	bound          netip.AddrPort
	advertisedHost string // announced to peers
	port           int
	securePort     int // port without TLSListen
	transport      *sipmsg.TransportLayer
	transactions   *sipmsg.TransactionLayer
	guard          *guard
	branches       branches
	inspect        *inspector
	panics         *panics.Recoverer
	nonces         *nonces
	background     *tasks
	ctx            context.Context // of transactions
	stop           context.CancelFunc
	serving        context.Context // of handlers; ends first
	refuse         context.CancelFunc

	mu      sync.Mutex
	dialogs map[string]*Leg
	calls   int  // legs and unanswered INVITEs
	closing bool // no new ones are accepted
}

type route struct {
	prefix  string
	handler Handler
}

// New binds the sockets. Nothing is read before Run.
func New(config Config, users Authenticator, bindings Bindings, reg prometheus.Registerer, log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if users == nil || bindings == nil {
		return nil, errors.New("sip: users and bindings are needed")
	}
	s := &Server{
		config: config.withDefaults(), users: users, bindings: bindings, log: log,
		dialogs: map[string]*Leg{},
	}
	s.metrics, s.panics = newMetrics(reg), panics.New(reg, log)
	s.panics.InitMetrics(placeDatagram, placeParse, placeRequest, placeCall, placeSDP)
	var key [32]byte
	for _, k := range []*[32]byte{&key, &s.branches.key} {
		rand.Read(k[:]) // never fails
	}
	s.nonces = newNonces(key, s.config.NonceLifetime)
	s.guard = newGuard(s.config, &s.branches, s.metrics)
	s.inspect = newInspector(s.panics, s.metrics)
	s.background = newTasks(s.panics)
	err := s.listen()
	if err != nil {
		return nil, err
	}
	if s.advertisedHost, s.port, err = s.config.advertised(s.bound); err == nil {
		err = s.listenTLS()
	}
	if err != nil {
		return nil, errors.Join(err, s.udp.Close(), s.tcp.Close())
	}
	s.newStack()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.serving, s.refuse = context.WithCancel(s.ctx)
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
			s.udp, s.bound = &datagrams{UDPConn: udp, guard: s.guard, inspect: s.inspect, log: s.log}, bound
			s.tcp = s.newConnections(tcp, nil)
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
	s.securePort = s.port
	if s.config.TLSListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.config.TLSListen)
	if err != nil {
		return fmt.Errorf("listening for SIP over TLS: %w", err)
	}
	s.tls = s.newConnections(listener, s.config.TLS)
	s.securePort = listener.Addr().(*net.TCPAddr).Port
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

// newStack creates the SIP stack. Its transactions receive a message after datagrams.received.
func (s *Server) newStack() {
	stackLog := slog.New(stackLogger{metrics: s.metrics, log: s.log})
	s.transport = sipmsg.NewTransportLayer(net.DefaultResolver, sipmsg.NewParser(), s.config.DialTLS,
		sipmsg.WithTransportLayerLogger(stackLog), sipmsg.WithTransportLayerReadFilter(s.inspectDialled))
	s.transport.OnMessage(s.udp.received)
	address := s.udp.LocalAddr().String()
	socket := &sipmsg.UDPConnection{PacketConn: s.udp, PacketAddr: address, Listener: true}
	s.transport.Pool("udp").Add(address, socket) // until the stack reads the socket, because calls may be placed before
	s.udp.peers = peers{connections: s.transport.Pool("udp"), socket: socket, max: maxPeers, life: peerLife, metrics: s.metrics}
	s.transactions = sipmsg.NewTransactionLayer(s.transport,
		sipmsg.WithTransactionLayerLogger(stackLog),
		sipmsg.WithTransactionLayerUnhandledResponseHandler(func(*sipmsg.Response) { s.metrics.strays.Inc() }),
		sipmsg.WithTransactionLayerTerminateOnConnClose(),
	)
	s.transactions.OnRequest(s.dispatch)
}

// inspectDialled is the stack's read filter. It inspects the connections that the stack has opened.
// Other connections have the local port of a listener and were inspected by the sockets of this
// package.
func (s *Server) inspectDialled(from sipmsg.TransportReadProps, data []byte) ([]byte, error) {
	local, ok := from.LocalAddr.(*net.TCPAddr)
	if !ok || local.Port == int(s.bound.Port()) || s.tls != nil && local.Port == s.securePort {
		return data, nil
	}
	if err := s.inspect.dialled(local.String(), from.RemoteAddr.String(), data); err != nil {
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

// Watch registers d for new and ended registrations. It must be called before Run.
func (s *Server) Watch(d Devices) { s.devices = append(s.devices, d) }

// Addr returns the bound address.
func (s *Server) Addr() netip.AddrPort { return s.bound }

// TLSPort returns the port of the TLS listener, or 0.
func (s *Server) TLSPort() int {
	if s.tls == nil {
		return 0
	}
	return s.securePort
}

// Host returns the host announced to peers.
func (s *Server) Host() string { return s.advertisedHost }

// Contacts returns a user's bindings.
func (s *Server) Contacts(ctx context.Context, accountID, extension string) ([]Binding, error) {
	return s.bindings.List(ctx, AOR{AccountID: accountID, Extension: extension})
}

// Registered reports whether a user has a registered phone.
func (s *Server) Registered(ctx context.Context, accountID, extension string) (bool, error) {
	found, err := s.Contacts(ctx, accountID, extension)
	return len(found) > 0, err
}

// Run serves until ctx ends. It then refuses new calls, sends a BYE on the remaining legs, and returns
// when those transactions are over, or after a few seconds.
func (s *Server) Run(ctx context.Context) error {
	var work sync.WaitGroup
	work.Go(func() { s.serveDatagrams(ctx) })
	work.Go(func() { s.serve(s.transport.ServeTCP(s.tcp)) })
	if s.tls != nil {
		work.Go(func() { s.serve(s.transport.ServeTLS(s.tls)) })
	}
	work.Go(func() { s.sweep(ctx) })
	<-ctx.Done()
	s.refuse()
	s.hangUpAll()
	settled := s.background.close()
	select {
	case <-settled:
	case <-time.After(settleLimit):
	}
	s.stop() // ends the remaining transactions
	<-settled
	// The stack opens a new socket for a response whose own socket was closed, and never closes it.
	// Wait until it has handled the messages it has read.
	s.guard.shut.Store(true)
	time.Sleep(quiet)
	closed := errors.Join(s.closeListeners(), s.closeStack())
	work.Wait()
	return errors.Join(closed, s.closeStack())
}

// quiet is longer than the time that the stack needs to handle a message that it has read.
const quiet = 30 * time.Millisecond

// settleLimit is the timeout for the last transactions of calls.
const settleLimit = 3 * time.Second

// serve logs the error that ended a listener, unless Run has closed it.
func (s *Server) serve(err error) {
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

// handler returns the handler of calls to a user, or nil.
func (s *Server) handler(user string) Handler {
	for _, r := range s.routes {
		if strings.HasPrefix(user, r.prefix) {
			return r.handler
		}
	}
	return nil
}

// reserve takes a place for one more leg and reports whether one was free; release returns it.
func (s *Server) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.calls >= s.config.Limits.MaxCalls {
		return false
	}
	s.calls++
	s.metrics.calls.Inc()
	return true
}

func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.metrics.calls.Dec()
}
