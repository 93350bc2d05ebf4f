package fanout

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"trunkline/fanout/conn"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/wsframe"
)

const (
	transportWebSocket   = "websocket"
	transportEventStream = "sse"
)

// Request is a client's request to subscribe.
type Request struct {
	HTTP    *http.Request
	Address string // the client's address, without port
}

// ServeWebSocket upgrades the request to a WebSocket and subscribes it; see
// docs/channel.md. It writes nothing before it returns an error.
func (f *Fanout) ServeWebSocket(w http.ResponseWriter, req Request) error {
	err := f.upgradeWebSocket(w, req)
	f.countRefusal(err)
	return err
}

func (f *Fanout) upgradeWebSocket(w http.ResponseWriter, req Request) error {
	r := req.HTTP
	if !wsframe.RequireHandshake(w, r) {
		return fault.New(fault.KindUpgrade, "this is a WebSocket: upgrade the connection")
	}

	// Drain waits for handshakes too: until register, the subscriber is not among those that it disconnects.
	f.handshakes.Add(1)
	defer f.handshakes.Add(-1)

	query := r.URL.Query()
	// The query is specific to this connection; a client may send the header
	// with all.
	since := cmp.Or(query.Get("since"), r.Header.Get("Last-Event-ID"))
	s, err := f.admit(req, since, query.Get("cursor") == "true")
	if err != nil {
		return err
	}

	// Register before the upgrade: the subscriber gets every event from the moment at which the client is told.
	t := &webSocket{owner: f, goroutines: f.goroutines}
	s.transport = t
	f.register(s)
	ws, err := conn.Upgrade(w, r, f.cfg.Compression)
	if err != nil {
		f.unregister(s.subscriber)
		s.markClosed()
		f.subscribers.forget(s.subscriber)
		// In both cases the connection is hijacked or has ended: there is nobody to whom an error could be written.
		if errors.Is(err, conn.ErrListener) {
			f.logger.Error("connection cannot be served", "error", err)
		} else if !errors.Is(err, conn.ErrEnded) {
			return err
		}

		return nil
	}

	t.attach(ws)
	f.metrics.opened.WithLabelValues(transportWebSocket).Inc()
	if !f.goroutines.start(func() { t.read(s.subscriber) }) {
		f.remove(s.subscriber, DisconnectBroken)
		return nil
	}

	f.startDelivery(s)
	return nil
}

// admission is an accepted subscriber with its start positions.
type admission struct {
	*subscriber
	starts         []replayStart       // in what the subscriber follows; nil: live from now on
	otherPositions []partitionPosition // positions of its cursor in other partitions
	earliest       bool                // replay the whole log
	gapCount       int64               // value of Fanout.gapCount before the starts were looked up
}

// admit authenticates and checks a subscription and finds its start positions. On
// success it holds references in followedPartitions and the connection lease; unregister
// releases both.
func (f *Fanout) admit(req Request, since string, cursor bool) (*admission, error) {
	r := req.HTTP
	if f.draining.Load() {
		return nil, fault.Unavailable(nil, time.Second, "shutting down, retry")
	}

	principal, err := f.auth.Authenticate(r.Context(), bearer(r), identity.AudienceEvents)
	if err != nil {
		return nil, err
	}

	s := f.newSubscriber(principal, req.Address, cursor)
	if s == nil {
		return nil, fault.Forbidden("the token's accounts are not accessible any more")
	}

	ctx, cancel := context.WithTimeout(r.Context(), handshakeTimeout)
	defer cancel()

	// Before the look-ups in Kafka, so that a client above its limit costs none.
	if err := f.limiter.acquireLease(ctx, s); err != nil {
		return nil, err
	}

	a := &admission{subscriber: s}
	if err := f.findStarts(ctx, a, since); err != nil {
		f.recordRefusal(a, req, err)
		// ctx may have ended; without this the lease would count until it expires.
		f.limiter.releaseLeases(context.WithoutCancel(ctx), []*subscriber{s})
		return nil, asUnavailable(err)
	}

	return a, nil
}

// findStarts chooses and acquires the partitions of a subscriber and finds its start in
// each of them.
func (f *Fanout) findStarts(ctx context.Context, a *admission, since string) error {
	at, err := parseResume(since)
	if err != nil {
		return err
	}

	a.connectionHistory.resumedFrom = resumedFrom{after: at.id, earliest: at.earliest, requested: at.resumes()}
	if err := f.accountPartitions.awaitLoaded(ctx); err != nil {
		return err
	}

	// Before the first look-up: register disconnects if a stream has found a gap since.
	a.gapCount = f.gapCount.Load()
	sp, flt := &a.partitions, a.filter.Load()
	// Before the partitions are chosen, since it may find more of them.
	if err := f.resumer.ensurePartitionsKnown(ctx, at); err != nil {
		return err
	}

	sp.interest, sp.partitionCount = f.accountPartitions.partitionsOf(flt, f.directory.Tree())
	past, err := f.resumer.pastPartitions(ctx, at)
	if err != nil {
		return err
	}

	for p := range past.all() {
		sp.addPermanent(p)
	}

	sp.interest = sp.withPermanent(sp.interest)
	err = f.followedPartitions.follow(ctx, sp.interest)
	if err != nil || since == "" {
		return err
	}

	a.earliest = at.earliest
	a.starts, err = f.resumer.resumeStarts(ctx, at, sp.interest, flt)
	if err != nil {
		f.followedPartitions.unfollow(sp.interest)
		return err
	}

	for _, p := range at.positions {
		if !sp.interest.has(p.partition) {
			a.otherPositions = append(a.otherPositions, p)
		}
	}

	return nil
}

// newSubscriber creates a subscriber. It returns nil when none of the token's
// accounts is accessible.
func (f *Fanout) newSubscriber(principal *identity.Principal, address string, cursor bool) *subscriber {
	principal, filter := f.principals.share(principal, newFilter(principal, f.directory))
	if filter == nil {
		return nil
	}

	now := time.Now()
	s := &subscriber{id: uuid.NewString(), principal: principal, address: address,
		connectedAt: now, queueLimit: int(f.cfg.QueueBytes)}
	s.filter.Store(filter)
	s.lastSeen.Store(now.Unix())
	s.lastPong.Store(now.Unix())

	if cursor {
		s.cursorTracker = &cursorTracker{}
	}

	return s
}

// asUnavailable converts an error without a kind, such as a Kafka error, and that of a
// missing topic to fault.KindUnavailable, so that the client retries: to a client
// fault.KindNotFound would say that retries are useless.
func asUnavailable(err error) error {
	k := fault.KindOf(err)
	if k != fault.KindInternal && k != fault.KindNotFound {
		return err
	}
	return fault.Unavailable(err, time.Second, "events are not available")
}

func (f *Fanout) countRefusal(err error) {
	if err != nil {
		f.metrics.refused.WithLabelValues(string(fault.KindOf(err))).Inc()
	}
}

// bearer returns the token of a request, from the Authorization header or else from
// the query: browsers cannot set the header of a WebSocket request.
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return r.URL.Query().Get("token")
}
