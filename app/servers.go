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
)

// listen binds both listeners before anything else is opened, so that a port in use is
// reported at once.
func (a *App) listen(context.Context) error {
	public, err := net.Listen("tcp", a.settings.Listen)
	if err != nil {
		return listenError("listen", err)
	}

	a.lifecycle.addClose("public address", func(context.Context) error { return closeListener(public) })

	private, err := net.Listen("tcp", a.settings.MetricsListen)
	if err != nil {
		return listenError("metrics_listen", err)
	}

	a.lifecycle.addClose("metrics address", func(context.Context) error { return closeListener(private) })
	a.public, a.private = conn.NewListener(public), private

	// Registered first, so that it stops last, and started now, so that probes are answered
	// while the process waits for a backend.
	a.lifecycle.addServer("metrics listener", startServer(a.privateServer()))
	return nil
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
	tls      bool
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

func (a *App) publicServer(handler http.Handler) *httpServer {
	s := &httpServer{listener: a.public, Server: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		// Errors of clients during a handshake, which do not need an operator.
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}}

	if a.settings.TLS.Mode == "off" {
		a.log.Info("listening, plain HTTP", "address", a.public.Addr())
		return s
	}
	if a.settings.TLS.CertFile != "" {
		s.Handler = withHSTS(handler)
	}

	s.tls = true
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: a.certificate.Get}
	a.log.Info("listening, TLS", "address", a.public.Addr())

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
func (a *App) privateServer() *httpServer {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{Registry: a.registry}))
	mux.HandleFunc("/livez", a.health.handleLive)
	mux.HandleFunc("/readyz", a.health.handleReady)

	if a.settings.Debug.PProf {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}

	a.log.Info("listening, metrics and probes", "address", a.private.Addr())
	return &httpServer{listener: a.private, Server: &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}}
}
