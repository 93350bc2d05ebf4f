package eventdriver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/panics"
	"trunkline/origination"
)

// Driver places and follows calls on one platform; it is an origination.Driver and Adopter.
type Driver[C TrackedCall, K Conn] struct {
	cfg      Config
	platform Platform[C, K]
	log      *slog.Logger
	metrics  *metrics
	panics   *panics.Recoverer
	adopted  chan struct{} // signals that calls were taken over and have not been compared yet

	mu            sync.Mutex
	conn          K // nil while disconnected
	connected     bool
	disconnectErr error        // the reason for the missing connection
	epoch         int          // number of conn; increases with each
	calls         map[string]C // unfinished calls by key
}

// RetryAfter is the Retry-After of a request that fails because the platform is disconnected or does
// not respond.
const RetryAfter = 2 * time.Second

// New returns a driver, which places calls while Follow runs. It reports panics to recoverer.
func New[C TrackedCall, K Conn](cfg Config, platform Platform[C, K], deps Deps,
	recoverer *panics.Recoverer) *Driver[C, K] {
	cfg.Limits = cfg.withDefaults()
	d := &Driver[C, K]{
		cfg: cfg, platform: platform, log: deps.Log, metrics: newMetrics(deps.Metrics, cfg.Name), panics: recoverer,
		adopted: make(chan struct{}, 1), calls: make(map[string]C),
	}
	recoverer.InitMetrics(d.sessionPanicPlace(), d.hangUpPanicPlace())
	return d
}

// Places of recovered panics.
func (d *Driver[C, K]) sessionPanicPlace() string { return d.cfg.Name + " session" }
func (d *Driver[C, K]) hangUpPanicPlace() string  { return d.cfg.Name + " hang-up" }

// Originate implements origination.Driver. The call's id is the order's.
func (d *Driver[C, K]) Originate(ctx context.Context, order origination.Order) (origination.Placed, error) {
	err := d.place(ctx, order)
	d.metrics.countOriginate(err)
	if err != nil {
		return origination.Placed{}, err
	}
	return origination.Placed{CallID: order.ID}, nil
}

func (d *Driver[C, K]) place(ctx context.Context, order origination.Order) error {
	d.mu.Lock()
	conn := d.conn
	d.mu.Unlock()

	send, err := d.platform.Prepare(ctx, conn, order)
	if err != nil {
		return err
	}

	// The order may have waited for its turn: there may be another connection meanwhile, or none.
	c, conn, err := d.addNew(order.ID)
	if err != nil {
		return err
	}

	err = send(ctx, conn)
	d.mu.Lock()
	defer d.mu.Unlock()

	c.placing = false
	if err == nil {
		c.unwanted = false // the connection may have been lost just after the answer
		return nil
	}

	failure, advice := d.platform.Explain(err)
	switch failure {
	case Refused:
		d.removeCall(c)
		d.log.WarnContext(ctx, "call refused by the phone platform", "error", err, "advice", advice)
		return &fault.Error{Kind: fault.KindRefused, Message: "the phone platform refused the call", Cause: err}
	case NotSent:
		d.removeCall(c)
	default:
		// The platform may have received the order. The caller gets an error, so no phone may ring: hang
		// up the call's channels whenever they appear.
		c.unwanted = true
	}

	return fault.Unavailable(err, RetryAfter, "the phone platform did not answer")
}

// addNew adds a call before the platform can send events of it.
func (d *Driver[C, K]) addNew(id string) (*Call, K, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	_, open := d.calls[d.platform.Key(id)]
	switch failure, _ := d.platform.Explain(d.disconnectErr); {
	case !d.connected && failure == LoginDenied:
		return nil, d.conn, fault.Unavailable(d.disconnectErr, RetryAfter, "the phone platform rejects our login")
	case !d.connected:
		return nil, d.conn, fault.Unavailable(d.disconnectErr, RetryAfter, "the phone platform cannot be reached")
	case open:
		return nil, d.conn, fault.Conflict("there is a call with this id")
	case len(d.calls) >= d.cfg.MaxCalls:
		return nil, d.conn, fault.Unavailable(nil, RetryAfter, "too many calls are being placed")
	}

	return d.addCall(Call{ID: id, State: origination.Accepted, epoch: d.epoch, placing: true}), d.conn, nil
}

func (d *Driver[C, K]) addCall(c Call) *Call {
	tracked := d.platform.NewCall(c)
	d.calls[d.platform.Key(c.ID)] = tracked
	d.metrics.calls.Set(float64(len(d.calls)))
	return tracked.common()
}

func (d *Driver[C, K]) removeCall(c *Call) {
	delete(d.calls, d.platform.Key(c.ID))
	d.metrics.calls.Set(float64(len(d.calls)))
}

// Cancel implements origination.Driver. If the call has no channel yet, or was placed over a lost
// connection, it is hung up when a channel appears.
func (d *Driver[C, K]) Cancel(ctx context.Context, callID string) error {
	d.mu.Lock()
	c, open := d.calls[d.platform.Key(callID)]
	if !open || c.common().unwanted {
		d.mu.Unlock()
		return fault.NotFound("no such call")
	}

	// Before the hang-ups: a channel that appears meanwhile ends too.
	c.common().Cancelled = true
	channels, conn, connected := c.Channels(), d.conn, d.connected
	d.mu.Unlock()

	d.metrics.cancels.Inc()
	if !connected {
		return nil
	}

	for _, channel := range channels {
		if err := d.hangUpChannel(ctx, conn, channel); err != nil {
			return err
		}
	}

	return nil
}

// hangUpChannel ends one channel. It returns nil if the connection is lost: the comparison after the next
// connect then ends the call.
func (d *Driver[C, K]) hangUpChannel(ctx context.Context, conn K, channel string) error {
	err := d.platform.HangUp(ctx, conn, channel)
	if err == nil {
		return nil
	}

	failure, advice := d.platform.Explain(err)
	if failure == Refused {
		d.log.WarnContext(ctx, "hang-up refused by the phone platform", "error", err, "advice", advice)
		return &fault.Error{Kind: fault.KindRefused, Message: "the phone platform refused to end the call", Cause: err}
	}

	return ctx.Err()
}
