package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"trunkline/fanout/conn"
	"trunkline/internal/certificate"
	"trunkline/internal/fault"
)

// listen binds both listeners before anything else is opened, so that a port in use is
// reported at once, and returns the public one.
func listen(p *process) (net.Listener, error) {
	public, err := net.Listen("tcp", p.settings.Listen)
	if err != nil {
		return nil, listenError("listen", err)
	}

	p.lifecycle.addClose("public address", func(context.Context) error { return closeListener(public) })

	private, err := net.Listen("tcp", p.settings.MetricsListen)
	if err != nil {
		return nil, listenError("metrics_listen", err)
	}

	p.lifecycle.addClose("metrics address", func(context.Context) error { return closeListener(private) })

	// Registered first, so that it stops last, and started now, so that probes are answered
	// while the process waits for a backend.
	p.lifecycle.addServer("metrics listener", startServer(privateServer(p, private)))
	return conn.NewListener(public), nil
}

// listenError returns the error of an address that cannot be listened on, with advice. It drops
// the prefix "listen tcp".
func listenError(setting string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		err = fmt.Errorf("%s: %w", op.Addr, op.Err)
	}
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %w (this machine does not have that address: set %[1]s to one it has)", setting, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %w (is another trunkline running? set %[1]s to another address)", setting, err)
	}
	return fmt.Errorf("%s: %w", setting, err)
}

// closeListener closes l unless a server has closed it.
func closeListener(l net.Listener) error {
	err := l.Close()
	if !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// httpServer is an http.Server on a listener.
type httpServer struct {
	*http.Server
	listener net.Listener
	tls      bool // serve TLS, by the Server's TLSConfig
}

func (s *httpServer) serve() error {
	var err error
	if s.tls {
		err = s.ServeTLS(s.listener, "", "")
	} else {
		err = s.Serve(s.listener)
	}

	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}

	return err
}

// shutdown waits for running requests; it closes connections that do not finish in time.
func (s *httpServer) shutdown(ctx context.Context) error {
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

const (
	headerTimeout = 10 * time.Second
	readTimeout   = 2 * time.Minute // of a request with its body
	idleTimeout   = 2 * time.Minute
	headerBytes   = 64 << 10
)

// startedServer is a server that is already serving.
type startedServer struct {
	*httpServer
	ended chan error
}

func startServer(s *httpServer) *startedServer {
	started := &startedServer{s, make(chan error, 1)}
	go func() { started.ended <- s.serve() }()
	return started
}

func (s *startedServer) serve() error { return <-s.ended }

func publicServer(p *process, listener net.Listener, handler http.Handler) *httpServer {
	s := &httpServer{listener: listener, Server: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		// Errors of clients during a handshake, which do not need an operator.
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}}

	if p.settings.TLS.Mode == "off" {
		p.log.Info("listening, plain HTTP", "address", listener.Addr())
		return s
	}
	if p.settings.TLS.CertFile != "" {
		s.Handler = withHSTS(handler)
	}

	s.tls = true
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.certificate.Get}
	p.log.Info("listening, TLS", "address", listener.Addr())

	return s
}

// withHSTS makes browsers use only TLS for this host from now on (RFC 6797). It is for
// configured certificates: with the self-signed one the host is often localhost, and
// browsers would refuse plain HTTP on all its other ports too.
func withHSTS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// privateServer returns the server of metrics, probes and debugging.
func privateServer(p *process, listener net.Listener) *httpServer {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{Registry: p.registry}))
	mux.HandleFunc("/livez", p.health.handleLive)
	mux.HandleFunc("/readyz", p.health.handleReady)

	if p.settings.Debug.PProf {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}

	p.log.Info("listening, metrics and probes", "address", listener.Addr())
	return &httpServer{listener: listener, Server: &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}}
}

// openCertificate opens the configured certificate of the public listener and of SIP
// over TLS, or creates a self-signed one in the data directory if none is configured;
// nil: no TLS.
func openCertificate(p *process) (*certificate.Reloader, error) {
	if p.settings.TLS.Mode == "off" && p.settings.SIP.Server.TLSListen == "" {
		return nil, nil
	}

	pair := certificate.Pair{CertSetting: "tls.cert_file", CertFile: p.settings.TLS.CertFile,
		KeyFile: p.settings.TLS.KeyFile}
	if pair.CertFile == "" {
		pair.CertFile, pair.KeyFile = p.settings.SelfSigned()
		if err := certificate.EnsureSelfSigned(pair.CertFile, pair.KeyFile, p.log); err != nil {
			return nil, fmt.Errorf("creating a self-signed certificate: %w", err)
		}
	}

	server, err := certificate.Open(pair, p.log)
	if err != nil {
		return nil, fault.Permanent(fmt.Errorf("tls.cert_file, tls.key_file: %w", err))
	}

	return server, nil
}
