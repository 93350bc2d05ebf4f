package aisession

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/fault"
	"trunkline/internal/panics"
	"trunkline/internal/setting"
	"trunkline/telephony/audio"
)

// Service opens AI sessions. It is safe for concurrent use.
type Service struct {
	settings        Settings
	deps            Deps
	dialplanSecrets []dialplanSecret
	metrics         *metrics
	log             *slog.Logger
	scheduler       *tickScheduler
	panics          *panics.Recoverer
	events          eventQueues

	mu       sync.Mutex
	sessions map[string]*Session // by id, including those being opened
	draining bool
	allEnded chan struct{} // closed when draining and no session is left
}

// New returns a Service that opens sessions while Run runs.
func New(settings Settings, deps Deps) (*Service, error) {
	if err := setting.Validate("aisession", settings); err != nil {
		return nil, err
	}
	if deps.Providers == nil || deps.Publisher == nil || deps.Announcements == nil || deps.Leases == nil {
		return nil, errors.New("aisession: a dependency is missing")
	}

	recoverer := panics.New(deps.Metrics, deps.Log)
	secrets, err := parseDialplanSecrets(string(settings.DialplanSecrets))
	if err != nil {
		return nil, fmt.Errorf("aisession.audiosocket_secrets: %w", err)
	}

	recoverer.InitMetrics(placeTick, placeIngress)
	return &Service{
		panics: recoverer, settings: settings, deps: deps, dialplanSecrets: secrets, metrics: newMetrics(deps.Metrics),
		log:       deps.Log,
		scheduler: newTickScheduler(runtime.GOMAXPROCS(0), time.Now(), sleepFor), events: newEventQueues(),
		sessions: make(map[string]*Session), allEnded: make(chan struct{}),
	}, nil
}

// Run serves sessions until ctx ends. It then opens no more, waits up to Settings.DrainLimit for
// the existing ones, and ends the rest.
func (s *Service) Run(ctx context.Context) error {
	// The sessions that drain still need their ticks, events and leases.
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var workers sync.WaitGroup
	workers.Go(func() { s.scheduler.run(runCtx) })
	for _, queue := range s.events {
		workers.Go(func() { s.publishEvents(runCtx, queue) })
	}

	workers.Go(func() { s.runLeaseRenewal(runCtx) })
	if s.deps.CallNodes != nil {
		workers.Go(func() { s.deps.CallNodes.Answer(runCtx, s.ApplyCallUpdate) })
	}

	<-ctx.Done()
	s.drain()
	stop()
	workers.Wait()

	return nil
}

// drain rejects new sessions and waits for the others, which it ends after the drain limit.
func (s *Service) drain() {
	s.mu.Lock()
	s.draining = true
	if len(s.sessions) == 0 {
		close(s.allEnded)
	}
	s.mu.Unlock()

	timer := time.NewTimer(s.settings.DrainLimit)
	defer timer.Stop()

	select {
	case <-s.allEnded:
	case <-timer.C:
		s.mu.Lock()
		for _, session := range s.sessions {
			session.end(Ending{Reason: Drained, Cause: aiprotocol.NormalClearing})
		}
		s.mu.Unlock()
		// An ended session still closes its provider's connection, within closeTimeout or writeTimeout.
		<-s.allEnded
	}
}

// Open connects to a request's provider and sends start. The caller must call Run or Close on the
// session. The error is fault.KindLimited above a limit, fault.KindUnavailable if the provider cannot
// be reached or the process is shutting down, fault.KindConflict for an id of another session, and
// fault.KindRefused if the provider refuses.
func (s *Service) Open(ctx context.Context, r Request) (*Session, error) {
	return s.openSession(ctx, r, nil)
}

func (s *Service) openSession(ctx context.Context, r Request, test *testCall) (*Session, error) {
	session, err := s.newSession(r)
	if err != nil {
		return nil, err
	}

	session.testCall = test
	ctx = session.beginSpan(ctx)
	if err := s.admitAndConnect(ctx, session); err != nil {
		session.span.End(err)
		return nil, err
	}

	s.metrics.started.WithLabelValues(r.Ingress).Inc()
	s.reportState(session, stateStarted, "")
	return session, nil
}

// admitAndConnect adds a session and connects it to its provider.
func (s *Service) admitAndConnect(ctx context.Context, session *Session) error {
	if err := s.admit(ctx, session); err != nil {
		return err
	}

	o := outage{retryLimit: s.settings.GiveUp}
	// A provider that is away from the start has as long as one that is lost during a call.
	o.recordLoss(nil)
	if err := session.establish(ctx, &o); err != nil {
		s.removeSession(session)
		reason := refusedProvider
		if ctx.Err() != nil {
			reason = refusedHungUp
		}

		s.metrics.refused.WithLabelValues(reason).Inc()
		if isPermanent(err) {
			return &fault.Error{Kind: fault.KindRefused, Message: administratorMessage(err), Cause: err}
		}

		return fault.Unavailable(err, time.Second, administratorMessage(err))
	}

	return nil
}

// newSession returns a session that is neither admitted nor connected.
func (s *Service) newSession(r Request) (*Session, error) {
	protocol, known := dialect.Find(r.Provider.Protocol)
	if !known {
		return nil, fault.Internal(fmt.Errorf("AI provider %s has protocol %q", r.Provider.ID, r.Provider.Protocol),
			"the provider's protocol is not known")
	}
	if r.Provider.Listens != r.Listens {
		return nil, fault.New(fault.KindRefused, "the AI provider's mode, answer or listen, is the other one")
	}

	tracks, err := newTracks(&r)
	if err != nil {
		return nil, err
	}

	format := providerFormat(&r)
	toCall, err := audio.NewTranscoder(format, r.Format)
	if err != nil {
		return nil, fault.New(fault.KindUnsupported, "the provider's audio format is not supported")
	}

	session := &Session{
		service: s, sessionID: cmp.Or(r.SessionID, uuid.NewString()), publisher: rand.IntN(publisherCount), request: r,
		protocol: protocol, openedAt: time.Now(),
		tracks: tracks, toCall: toCall, playout: newPlayout(format, s.settings), endSignal: make(chan struct{}),
		requests: make(chan providerRequest, maxQueuedRequests),
	}
	session.log = s.log.With("session", session.sessionID, "provider_id", r.Provider.ID, "account_id",
		r.Provider.AccountID)

	return session, nil
}

// newTracks returns the tracks of a request.
func newTracks(r *Request) (tracks []*track, err error) {
	names := []aiprotocol.Track{aiprotocol.NoTrack}
	if r.Listens {
		names = []aiprotocol.Track{aiprotocol.TrackCaller, aiprotocol.TrackCallee}
	}

	for _, name := range names {
		t, err := newTrack(name, r.Format, r)
		if err != nil {
			return nil, err
		}
		tracks = append(tracks, t)
	}

	return tracks, nil
}

// admit adds a session, or returns the error of the limit that it exceeds.
func (s *Service) admit(ctx context.Context, session *Session) error {
	s.mu.Lock()
	draining, full := s.draining, s.settings.MaxSessions > 0 && len(s.sessions) >= s.settings.MaxSessions
	idInUse := s.sessions[session.sessionID] != nil
	if !draining && !full && !idInUse {
		// It counts before it is connected: a drain waits for it, and two calls cannot take one last place.
		s.sessions[session.sessionID] = session
		s.scheduler.assign(session)
		s.metrics.active.WithLabelValues(session.request.Ingress).Inc()
	}
	s.mu.Unlock()

	switch {
	case draining:
		s.metrics.refused.WithLabelValues(refusedDraining).Inc()
		return fault.Unavailable(nil, time.Second, "this node is shutting down")
	case full:
		s.metrics.refused.WithLabelValues(refusedNode).Inc()
		return fault.Limited(time.Second, "too many AI sessions on this node")
	case idInUse:
		return fault.Conflict("a session with this id is in progress")
	}

	if err := s.acquireLease(ctx, session); err != nil {
		s.removeSession(session)
		return err
	}

	return nil
}

// removeSession removes a session and releases its lease.
func (s *Service) removeSession(session *Session) {
	s.releaseLease(session)
	s.scheduler.unassign(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.sessionID)
	s.metrics.active.WithLabelValues(session.request.Ingress).Dec()
	if s.draining && len(s.sessions) == 0 {
		close(s.allEnded)
	}
}

// completeSession completes a session whose provider connection has been closed.
func (s *Service) completeSession(session *Session) {
	session.tickMu.Lock()
	for _, t := range session.tracks {
		stats := t.jitter.Stats()
		s.metrics.dropped.late.Add(float64(stats.Late))
		s.metrics.dropped.overrun.Add(float64(stats.Overrun))
	}
	session.tickMu.Unlock()

	s.metrics.ended.WithLabelValues(string(session.ending.Reason)).Inc()
	// Before removeSession: when the last one is removed, Run ends the publishers after what is queued.
	s.reportState(session, stateEnded, session.ending.Reason)
	session.endSpan()
	s.removeSession(session)
}
