package pbx

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/panics"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// Admission decides which calls phones and AI providers may place. Package origination has already
// admitted click-to-call calls. Errors are fault.Forbidden and fault.Limited.
type Admission interface {
	// CheckDestination returns fault.Forbidden for a destination that the account may not call.
	CheckDestination(ctx context.Context, attempt origination.Attempt, destination string) error
	// CountAttempt counts a call against its user's limit per minute. The error is fault.Limited above it.
	CountAttempt(ctx context.Context, attempt origination.Attempt) error
	// Acquire adds a call to the calls in progress, until Release. The error is fault.Limited if
	// the user or the account has too many.
	Acquire(ctx context.Context, attempt origination.Attempt) error
	// Release removes a call from the calls in progress. It does not block, and may be called more
	// than once.
	Release(callID string)
}

// Driver places and connects calls. It is an origination.Driver, a sip.Handler
// and a sip.RegistrationListener.
type Driver struct {
	config           Config
	server           *sip.Server
	ports            *rtp.Ports
	directory        sip.Directory
	localDestination localcall.Destination
	admission        Admission
	outbox           *outbox
	progress         *progressQueue
	metrics          *metrics
	log              *slog.Logger
	tones            tones
	panics           *panics.Recoverer

	mu       sync.Mutex
	calls    map[string]*call // by id
	draining bool             // no further call is taken
	idle     chan struct{}    // closed when draining and no call is left
}

// callPanicPlace is the label with which panics in a call's goroutines are counted.
const callPanicPlace = "pbx_call"

var _ origination.Driver = (*Driver)(nil)

// New returns a driver. It must be registered with the server's Handle("", driver) and
// Registrations.AddListener(driver) before the server runs. local may be nil.
func New(
	config Config, server *sip.Server, ports *rtp.Ports, directory sip.Directory, local localcall.Destination,
	admission Admission, records RecordPublisher, reg prometheus.Registerer, log *slog.Logger,
) (*Driver, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if server == nil || ports == nil || directory == nil || admission == nil || records == nil {
		return nil, errors.New("sip driver: server, ports, directory, admission and records are needed")
	}

	config = config.withDefaults()
	m, recoverer := newMetrics(reg), panics.New(reg, log)
	recoverer.InitMetrics(callPanicPlace)

	return &Driver{
		panics: recoverer,
		config: config, server: server, ports: ports, directory: directory, localDestination: local,
		admission: admission, metrics: m, log: log,
		outbox: newOutbox(outboxSize, records, m, log), progress: newProgressQueue(), tones: newTones(),
		calls: map[string]*call{}, idle: make(chan struct{}),
	}, nil
}

// Originate implements origination.Driver.
func (d *Driver) Originate(_ context.Context, order origination.Order) (origination.Placed, error) {
	c := newCall(d, order.AccountID, order.InteractionID)
	c.id, c.order = order.ID, &order
	if err := d.addCall(c); err != nil {
		return origination.Placed{}, err
	}
	c.reportProgress(origination.Accepted, "")
	go c.runClickToCall()
	return origination.Placed{CallID: order.ID}, nil
}

// addCall registers a call. The error is fault.Unavailable at MaxCalls.
func (d *Driver) addCall(c *call) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	switch {
	case d.draining:
		return fault.Unavailable(nil, time.Second, "this node is shutting down")
	case len(d.calls) >= d.config.MaxCalls:
		return fault.Unavailable(nil, time.Second, "too many calls at once")
	case d.calls[c.id] != nil:
		return fault.Conflict("a call with this id is in progress")
	}

	d.calls[c.id] = c
	d.metrics.calls.Inc()
	d.config.Recorder.PrepareRecording(c.accountID)

	return nil
}

func (d *Driver) removeCall(c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, c.id)
	d.metrics.calls.Dec()
	if d.draining && len(d.calls) == 0 {
		close(d.idle)
	}
}

// Cancel implements origination.Driver.
func (d *Driver) Cancel(_ context.Context, callID string) error {
	d.mu.Lock()
	c := d.calls[callID]
	d.mu.Unlock()
	if c == nil || c.order == nil {
		return fault.NotFound("the call is not in progress here")
	}
	c.cancelWithCause(sip.OriginatorCancel)
	return nil
}

// Registered reports whether the extension has a registered phone.
func (d *Driver) Registered(ctx context.Context, accountID, extension string) (bool, error) {
	return d.server.Registrations.Exist(ctx, accountID, extension)
}

// Follow implements origination.Driver.
func (d *Driver) Follow(ctx context.Context, open []origination.OpenCall, report func(origination.Progress)) error {
	for _, call := range open {
		if !d.hasCall(call.CallID) { // its media ended with its process
			report(origination.Progress{
				CallID: call.CallID, State: origination.Ended, Cause: string(sip.NormalTemporaryFailure),
				At: time.Now(),
			})
		}
	}

	d.progress.run(ctx, report)
	d.drain()
	d.progress.flush(report)

	return nil
}

func (d *Driver) hasCall(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[id] != nil
}

// Run publishes records until ctx ends, and then until the calls have ended and their records are
// published.
func (d *Driver) Run(ctx context.Context) error {
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	published := make(chan struct{})
	go func() {
		defer close(published)
		d.outbox.run(publishing)
	}()

	<-ctx.Done()
	limit := time.AfterFunc(drainTimeout, stop)
	defer limit.Stop()

	d.drain()
	d.outbox.close()
	<-published

	return nil
}

// drain ends all calls and waits for them.
func (d *Driver) drain() {
	d.mu.Lock()
	if !d.draining {
		d.draining = true
		if len(d.calls) == 0 {
			close(d.idle)
		}
	}

	for _, c := range d.calls {
		c.cancelWithCause(sip.NormalTemporaryFailure)
	}
	d.mu.Unlock()

	select {
	case <-d.idle:
	case <-time.After(drainTimeout):
		d.log.Warn("calls still up after the drain timeout")
	}
}
