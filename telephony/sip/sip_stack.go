package sip

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/panics"
)

// transports are the sockets and the SIP stack on them: what comes in, what is announced to peers, and what is
// sent. Its fields are set before it serves.
type transports struct {
	config  Config
	metrics *metrics
	panics  *panics.Recoverer
	log     *slog.Logger

	udp               *udpSocket
	tcp               *streamListener
	tls               *streamListener // nil without TLSListen
	boundAddr         netip.AddrPort
	advertisedHost    string // announced to peers
	advertisedPort    int
	advertisedTLSPort int // equals advertisedPort if TLSListen is empty

	transportLayer     *sipmsg.TransportLayer
	transactionLayer   *sipmsg.TransactionLayer
	limiter            *sourceLimiter
	branches           branchSigner
	panicGuard         *stackPanicGuard
	transactionCtx     context.Context // ends the transactions
	cancelTransactions context.CancelFunc
}

// newTransports binds the sockets. Nothing is read before serve.
// The stack calls handle for each request, on a goroutine of its own.
func newTransports(config Config, handle func(*sipmsg.Request, *sipmsg.ServerTx), m *metrics, p *panics.Recoverer,
	log *slog.Logger) (*transports, error) {
	t := &transports{config: config, metrics: m, panics: p, log: log}
	rand.Read(t.branches.key[:]) // never fails
	t.limiter = newSourceLimiter(config, &t.branches, m)
	t.panicGuard = newStackPanicGuard(p, m)
	err := t.listen()
	if err != nil {
		return nil, err
	}

	t.advertisedHost, t.advertisedPort, err = config.announcedAddr(t.boundAddr)
	if err == nil {
		err = t.listenTLS()
	}
	if err != nil {
		return nil, errors.Join(err, t.udp.Close(), t.tcp.Close())
	}

	t.newStack()
	t.transactionLayer.OnRequest(handle)
	t.transactionCtx, t.cancelTransactions = context.WithCancel(context.Background())

	return t, nil
}

// serve starts a goroutine of work for each socket, which reads it until close.
func (t *transports) serve(ctx context.Context, work *sync.WaitGroup) {
	work.Go(func() { t.serveDatagrams(ctx) })
	work.Go(func() { t.logListenerError(t.transportLayer.ServeTCP(t.tcp)) })
	if t.tls != nil {
		work.Go(func() { t.logListenerError(t.transportLayer.ServeTLS(t.tls)) })
	}
}

// close closes the sockets and the stack, after the transactions have ended. closeStack must be called again
// when what serve started has ended.
func (t *transports) close() error {
	// The stack opens a new socket for a response whose own socket was closed, and never closes it.
	// Wait until it has handled the messages it has read.
	t.limiter.closed.Store(true)
	time.Sleep(stackDrainTime)
	return errors.Join(t.closeListeners(), t.closeStack())
}

// stackDrainTime is longer than the time that the stack needs to handle a message that it has read.
const stackDrainTime = 30 * time.Millisecond

// logListenerError logs the error that ended a listener, unless Run has closed it.
func (t *transports) logListenerError(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		t.log.Error("SIP listener failed", "error", err)
	}
}

// bindAttempts is the number of attempts to find a port that is free for both UDP and TCP.
const bindAttempts = 10

// listen binds UDP and TCP to the same port.
func (t *transports) listen() error {
	for attempt := 1; ; attempt++ {
		packets, err := net.ListenPacket("udp", t.config.Listen)
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
			t.udp = &udpSocket{UDPConn: udp, limiter: t.limiter, panicGuard: t.panicGuard, log: t.log}
			t.boundAddr = bound
			t.tcp = t.newStreamListener(tcp, nil)
			return nil
		}

		err = errors.Join(fmt.Errorf("listening for SIP over TCP: %w", err), udp.Close())
		if attempt == bindAttempts || !strings.HasSuffix(t.config.Listen, ":0") {
			return err
		}
	}
}

// listenTLS binds the TLS listener if one is configured.
func (t *transports) listenTLS() error {
	t.advertisedTLSPort = t.advertisedPort
	if t.config.TLSListen == "" {
		return nil
	}

	listener, err := net.Listen("tcp", t.config.TLSListen)
	if err != nil {
		return fmt.Errorf("listening for SIP over TLS: %w", err)
	}

	t.tls = t.newStreamListener(listener, t.config.TLS)
	t.advertisedTLSPort = listener.Addr().(*net.TCPAddr).Port
	return nil
}

// closeListeners closes the sockets.
func (t *transports) closeListeners() error {
	err := errors.Join(t.udp.Close(), t.tcp.Close())
	if t.tls != nil {
		err = errors.Join(err, t.tls.Close())
	}
	return err
}

// newStack creates the SIP stack. Its transactions receive a message after udpSocket.setSource.
func (t *transports) newStack() {
	stackLog := slog.New(stackLogger{metrics: t.metrics, log: t.log})
	t.transportLayer = sipmsg.NewTransportLayer(net.DefaultResolver, sipmsg.NewParser(), t.config.DialTLS,
		sipmsg.WithTransportLayerLogger(stackLog), sipmsg.WithTransportLayerReadFilter(t.filterOutboundRead))
	t.transportLayer.OnMessage(t.udp.setSource)
	address := t.udp.LocalAddr().String()
	socket := &sipmsg.UDPConnection{PacketConn: t.udp, PacketAddr: address, Listener: true}

	// Register the socket now: calls may be placed before the stack starts reading it.
	t.transportLayer.Pool("udp").Add(address, socket)
	t.udp.peers = recentPeers{connections: t.transportLayer.Pool("udp"), socket: socket, maxAddresses: maxPeers,
		minAge: minPeerAge, metrics: t.metrics}

	t.transactionLayer = sipmsg.NewTransactionLayer(t.transportLayer,
		sipmsg.WithTransactionLayerLogger(stackLog),
		sipmsg.WithTransactionLayerUnhandledResponseHandler(func(*sipmsg.Response) { t.metrics.strayResponses.Inc() }),
		sipmsg.WithTransactionLayerTerminateOnConnClose(),
	)
}

// filterOutboundRead is the stack's read filter. It checks the connections that the stack has opened.
// Other connections have the local port of a listener and were checked by the sockets of this
// package.
func (t *transports) filterOutboundRead(from sipmsg.TransportReadProps, data []byte) ([]byte, error) {
	local, ok := from.LocalAddr.(*net.TCPAddr)
	if !ok || local.Port == int(t.boundAddr.Port()) || t.tls != nil && local.Port == t.advertisedTLSPort {
		return data, nil
	}
	if err := t.panicGuard.checkOutbound(local.String(), from.RemoteAddr.String(), data); err != nil {
		return nil, err
	}
	return data, nil
}

// closeStack ends the stack's transactions and connections.
func (t *transports) closeStack() error {
	t.transactionLayer.Close()
	return t.transportLayer.Close()
}
