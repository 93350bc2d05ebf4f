package sip

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

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

	transports     *transports
	dialogs        *dialogs
	registrar      *registrar
	routes         []route
	metrics        *metrics
	panics         *panics.Recoverer
	log            *slog.Logger
	handlerCtx     context.Context // ends the handlers, before the transactions
	cancelHandlers context.CancelFunc
}

// route is a handler of calls, for the users whose names begin with prefix.
type route struct {
	prefix  string
	handler Handler
}

// New binds the sockets. Nothing is read before Run.
func New(config Config, users Authenticator, bindings *RedisBindings, reg prometheus.Registerer,
	log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if users == nil || bindings == nil {
		return nil, errors.New("sip: users and bindings are required")
	}

	config = config.withDefaults()
	s := &Server{metrics: newMetrics(reg), panics: panics.New(reg, log), log: log}
	s.panics.InitMetrics(placeDatagram, placeParse, placeRequest, placeCall, placeSDP)
	var err error
	s.transports, err = newTransports(config, s.dispatch, s.metrics, s.panics, log)
	if err != nil {
		return nil, err
	}

	s.dialogs = newDialogs(s.transports)
	s.Registrations = &Registrations{bindings: bindings, minExpires: config.MinExpires,
		maxContacts: config.Limits.MaxContacts, metrics: s.metrics, panics: s.panics, log: log}
	s.registrar = newRegistrar(s.transports, s.Registrations, users)
	s.handlerCtx, s.cancelHandlers = context.WithCancel(s.transports.transactionCtx)

	return s, nil
}

const userAgent = "Trunkline"

// Handle registers h for calls to users whose name begins with prefix. The longest matching prefix
// wins; "" matches all. It must be called before Run.
func (s *Server) Handle(prefix string, h Handler) {
	s.routes = append(s.routes, route{prefix, h})
	slices.SortStableFunc(s.routes, func(a, b route) int { return len(b.prefix) - len(a.prefix) })
}

// Addr returns the bound address.
func (s *Server) Addr() netip.AddrPort { return s.transports.boundAddr }

// TLSPort returns the port of the TLS listener, or 0.
func (s *Server) TLSPort() int {
	if s.transports.tls == nil {
		return 0
	}
	return s.transports.advertisedTLSPort
}

// Host returns the host announced to peers.
func (s *Server) Host() string { return s.transports.advertisedHost }

// Dial places a call and returns its leg when it is answered, or a *Failure. If ctx ends first, the
// call is cancelled in the background and the failure's cause is NO_ANSWER if ctx's deadline passed,
// LOSE_RACE if ctx's cause is ErrAnsweredElsewhere, and ORIGINATOR_CANCEL otherwise.
func (s *Server) Dial(ctx context.Context, call OutgoingCall) (*Leg, error) {
	return s.dialogs.dialLeg(ctx, call)
}

// Run serves until ctx ends. It then rejects new calls, sends a BYE on the remaining legs, and returns
// when those transactions are over, or after a few seconds.
func (s *Server) Run(ctx context.Context) error {
	var work sync.WaitGroup
	s.transports.serve(ctx, &work)
	work.Go(func() { s.Registrations.sweepExpired(ctx) })
	<-ctx.Done()

	s.cancelHandlers()
	settled := s.dialogs.close()
	select {
	case <-settled:
	case <-time.After(settleTimeout):
	}

	s.transports.cancelTransactions() // ends the remaining transactions
	<-settled
	closed := s.transports.close()
	work.Wait()

	return errors.Join(closed, s.transports.closeStack())
}

// settleTimeout is the timeout for the last transactions of calls.
const settleTimeout = 3 * time.Second

// findHandler returns the handler of calls to a user, or nil.
func (s *Server) findHandler(user string) Handler {
	for _, r := range s.routes {
		if strings.HasPrefix(user, r.prefix) {
			return r.handler
		}
	}
	return nil
}
