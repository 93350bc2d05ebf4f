package aisession

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/netguard"
	"trunkline/telephony/audio"
)

type emptyDeps struct{}

func (emptyDeps) Open(context.Context, string) (aiprovider.Provider, error) {
	return aiprovider.Provider{}, nil
}
func (emptyDeps) Guard(aiprovider.Provider) netguard.Guard      { return netguard.Guard{} }
func (emptyDeps) Publish(context.Context, string, []byte) error { return nil }

func newIdleService(t testing.TB) *Service {
	t.Helper()
	s, err := New(DefaultSettings(), Deps{
		Providers: emptyDeps{}, Publisher: emptyDeps{}, Announcements: &RedisAnnouncements{},
		Leases:  &RedisSessionLeases{},
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	s.scheduler = newTickScheduler(len(s.scheduler.wheels), time.Now(), time.Sleep)
	return s
}

func newIdleSession(t testing.TB, s *Service, encoding string) *Session {
	t.Helper()
	format, _ := aiprotocol.FormatOf(encoding)
	session, err := s.newSession(Request{
		Provider: aiprovider.Provider{Format: format}, Ingress: IngressSIP,
		Format: audio.Format{Encoding: audio.ULaw, Rate: 8000}, RTPTimestamps: true,
	})
	if err != nil {
		t.Fatal(err)
	}

	s.scheduler.assign(session)
	s.scheduler.startTicks(session, time.Now())
	return session
}

// turnWheels turns the wheels until stop, which waits for them.
func turnWheels(s *Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.scheduler.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// idleConnection returns a connection that receives nothing and accepts all writes.
func idleConnection(s *Session) *providerConn {
	c := newProviderConn(s, idle{}, &nonblockingConn{fd: closedFD})
	s.connection.Store(c)
	return c
}

type idle struct{ net.Conn }

func (idle) Read([]byte) (int, error)    { return 0, errWouldBlock }
func (idle) Write(b []byte) (int, error) { return len(b), nil }

// silent plays nothing.
type silent struct{}

func (silent) Play([]byte)                                         {}
func (silent) SendDTMF(context.Context, byte, time.Duration) error { return nil }
func (silent) Transfer(context.Context, string) error              { return nil }
func (silent) Release(Ending)                                      {}
