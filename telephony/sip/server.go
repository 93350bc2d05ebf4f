package sip

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo"
	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/prometheus/client_golang/prometheus"
)

// Handler handles incoming calls.
type Handler interface {
	// ServeInvite handles one call on a goroutine of its own and returns when it is done with it. An
	// INVITE that it left without a final answer is then refused. ctx ends when the caller cancels or
	// the server closes.
	ServeInvite(ctx context.Context, invite *Invite)
}

// Server is a SIP user agent and registrar.
type Server struct {
	config    Config
	directory Directory
	bindings  Bindings
	devices   []Devices
	routes    []route
	metrics   *metrics
	log       *slog.Logger

	udp            net.PacketConn
	tcp            net.Listener
	bound          netip.AddrPort
	advertisedHost string // announced to peers
	port           int
	agent          *sipgo.UserAgent
	guard          *guard
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
func New(config Config, directory Directory, bindings Bindings, reg prometheus.Registerer, log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if directory == nil || bindings == nil {
		return nil, errors.New("sip: a directory and bindings are needed")
	}
	s := &Server{
		config: config.withDefaults(), directory: directory, bindings: bindings, log: log,
		dialogs: map[string]*Leg{}, background: newTasks(),
	}
	var err error
	if s.metrics, err = newMetrics(reg); err != nil {
		return nil, fmt.Errorf("registering the sip metrics: %w", err)
	}
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, fmt.Errorf("making the key of nonces: %w", err)
	}
	s.nonces = newNonces(key, s.config.NonceLifetime)
	s.guard = newGuard(s.config.Limits, s.config.TrustedNetworks, s.metrics)
	if err := s.listen(); err != nil {
		return nil, err
	}
	if s.advertisedHost, s.port, err = s.config.advertised(s.bound); err == nil {
		s.agent, err = s.newAgent()
	}
	if err != nil {
		return nil, errors.Join(err, s.udp.Close(), s.tcp.Close())
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.serving, s.refuse = context.WithCancel(s.ctx)
	return s, nil
}

// bindAttempts is the number of attempts to find a port that is free for both UDP and TCP.
const bindAttempts = 10

// listen binds UDP and TCP to the same port.
func (s *Server) listen() error {
	for attempt := 1; ; attempt++ {
		udp, err := net.ListenPacket("udp", s.config.Listen)
		if err != nil {
			return fmt.Errorf("listening for SIP over UDP: %w", err)
		}
		bound, err := netip.ParseAddrPort(udp.LocalAddr().String())
		if err != nil {
			return errors.Join(fmt.Errorf("the SIP address: %w", err), udp.Close())
		}
		tcp, err := net.Listen("tcp", bound.String())
		if err == nil {
			s.udp, s.bound = udp, bound
			s.tcp = newConnections(tcp, s.config, s.metrics)
			return nil
		}
		err = errors.Join(fmt.Errorf("listening for SIP over TCP: %w", err), udp.Close())
		if attempt == bindAttempts || !strings.HasSuffix(s.config.Listen, ":0") {
			return err
		}
	}
}

func (s *Server) newAgent() (*sipgo.UserAgent, error) {
	stackLog := slog.New(stackLogger{metrics: s.metrics, log: s.log})
	agent, err := sipgo.NewUA(
		sipgo.WithUserAgent(userAgent),
		sipgo.WithUserAgentTransportLayerOptions(
			sipmsg.WithTransportLayerLogger(stackLog),
			sipmsg.WithTransportLayerReadFilter(s.guard.filter),
		),
		sipgo.WithUserAgentTransactionLayerOptions(
			sipmsg.WithTransactionLayerLogger(stackLog),
			sipmsg.WithTransactionLayerUnhandledResponseHandler(func(*sipmsg.Response) { s.metrics.strays.Inc() }),
			sipmsg.WithTransactionLayerTerminateOnConnClose(),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("making the SIP stack: %w", err)
	}
	agent.TransactionLayer().OnRequest(s.dispatch)
	return agent, nil
}

const userAgent = "Trunkline"

// Handle makes h handle calls to users whose name begins with prefix. The longest matching prefix
// wins; "" matches all. It must be called before Run.
func (s *Server) Handle(prefix string, h Handler) {
	s.routes = append(s.routes, route{prefix, h})
	slices.SortStableFunc(s.routes, func(a, b route) int { return len(b.prefix) - len(a.prefix) })
}

// Watch makes d receive new and ended registrations. It must be called before Run.
func (s *Server) Watch(d Devices) { s.devices = append(s.devices, d) }

// Addr returns the bound address.
func (s *Server) Addr() netip.AddrPort { return s.bound }

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
	work.Go(func() { s.serve(s.agent.TransportLayer().ServeUDP(s.udp)) })
	work.Go(func() { s.serve(s.agent.TransportLayer().ServeTCP(s.tcp)) })
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
	closed := errors.Join(s.udp.Close(), s.tcp.Close(), s.agent.Close())
	work.Wait()
	return errors.Join(closed, s.agent.Close())
}

// quiet is longer than the stack takes to handle a message that it has read.
const quiet = 30 * time.Millisecond

// settleLimit is the timeout for the last transactions of calls.
const settleLimit = 3 * time.Second

// serve handles the end of a listener: only Run may close it.
func (s *Server) serve(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.Error("a SIP listener ended", "error", err)
	}
}

func (s *Server) hangUpAll() {
	s.mu.Lock()
	s.closing = true
	legs := make([]*Leg, 0, len(s.dialogs))
	for _, leg := range s.dialogs {
		legs = append(legs, leg)
	}
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
