package asterisk

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/panics"
	"trunkline/internal/setting"
	"trunkline/origination"
	"trunkline/telephony/ami"
)

// Driver places calls on one Asterisk; it is an origination.Driver.
type Driver struct {
	cfg     Config
	client  *ami.Client
	log     *slog.Logger
	metrics *metrics
	panics  *panics.Recoverer
	adopted chan struct{} // signals that calls were taken over and have not been compared yet

	mu    sync.Mutex
	conn  *ami.Conn        // nil while disconnected
	away  error            // why there is no connection
	epoch int              // number of conn; increases with each
	calls map[string]*call // unfinished calls by id
}

var (
	_ origination.Driver  = (*Driver)(nil)
	_ origination.Adopter = (*Driver)(nil)
)

// retryAfter is the Retry-After while there is no connection.
const retryAfter = 2 * time.Second

// New checks the configuration. The driver places calls while Follow runs.
func New(cfg Config, deps Deps) (*Driver, error) {
	cfg = cfg.withDefaults()
	if err := setting.Validate("origination.asterisk", cfg.Settings); err != nil {
		return nil, err
	}
	manager, err := cfg.manager()
	if err != nil {
		return nil, err
	}
	recoverer, err := panics.New(deps.Metrics, deps.Log)
	if err != nil {
		return nil, err
	}
	client, err := ami.New(manager, ami.Deps{Log: deps.Log, Metrics: deps.Metrics, Panics: recoverer})
	if err != nil {
		return nil, err
	}
	recoverer.Places(placeSession, placeHangUp)
	return &Driver{
		cfg: cfg, client: client, log: deps.Log, metrics: newMetrics(deps.Metrics), panics: recoverer,
		adopted: make(chan struct{}, 1), calls: make(map[string]*call),
	}, nil
}

// Originate implements origination.Driver. The call's id is the order's.
func (d *Driver) Originate(ctx context.Context, order origination.Order) (origination.Placed, error) {
	err := d.placeOrder(ctx, order)
	d.metrics.originated(err)
	if err != nil {
		return origination.Placed{}, err
	}
	return origination.Placed{CallID: order.ID}, nil
}

func (d *Driver) placeOrder(ctx context.Context, order origination.Order) error {
	action, err := d.cfg.originate(order)
	if err != nil {
		return err
	}
	c, conn, err := d.begin(order.ID)
	if err != nil {
		return err
	}
	if _, err = conn.Do(ctx, action); err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var refusal *ami.Refusal
	switch {
	case errors.As(err, &refusal):
		d.forget(c)
		d.log.WarnContext(ctx, "call refused by Asterisk", "error", err, "advice", advice(err))
		return &fault.Error{Kind: fault.KindRefused, Message: "the phone platform refused the call", Cause: err}
	case errors.Is(err, ami.ErrBusy), errors.Is(err, ami.ErrAction), errors.Is(err, ami.ErrDuplicate):
		d.forget(c) // it was not sent
	default:
		// Asterisk may have received the action. The caller gets an error, so no phone may ring: hang up
		// the call whenever its channel appears.
		c.cancelled, c.unwanted = true, true
	}
	return fault.Unavailable(err, retryAfter, "the phone platform did not answer")
}

// begin adds a call before Asterisk can send events of it.
func (d *Driver) begin(id string) (*call, *ami.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.conn == nil && errors.Is(d.away, ami.ErrDenied):
		return nil, nil, fault.Unavailable(d.away, retryAfter, "the phone platform rejects our login")
	case d.conn == nil:
		return nil, nil, fault.Unavailable(d.away, retryAfter, "the phone platform cannot be reached")
	case d.calls[id] != nil:
		return nil, nil, fault.Conflict("there is a call with this id")
	case len(d.calls) >= d.cfg.MaxCalls:
		return nil, nil, fault.Unavailable(nil, retryAfter, "too many calls are being placed")
	}
	c := newCall(id, origination.Accepted, d.epoch)
	d.remember(c)
	return c, d.conn, nil
}

// Cancel implements origination.Driver. If the call has no channel yet, or was placed over a lost
// connection, it is hung up when a channel appears.
func (d *Driver) Cancel(ctx context.Context, callID string) error {
	d.mu.Lock()
	c, conn := d.calls[callID], d.conn
	if c == nil || c.unwanted {
		d.mu.Unlock()
		return fault.NotFound("no such call")
	}
	c.cancelled = true
	d.mu.Unlock()
	d.metrics.cancels.Inc()
	if conn == nil {
		return nil
	}
	_, err := conn.Do(ctx, hangUp(callID))
	var refusal *ami.Refusal
	if errors.As(err, &refusal) && !strings.EqualFold(refusal.Message, "No such channel") {
		d.log.WarnContext(ctx, "hang-up refused by Asterisk", "error", err, "advice", advice(err))
		return &fault.Error{Kind: fault.KindRefused, Message: "the phone platform refused to end the call", Cause: err}
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil // after a lost connection the comparison hangs it up
}

// advice returns what to change in manager.conf about a refusal.
func advice(err error) string {
	var refusal *ami.Refusal
	switch {
	case errors.Is(err, ami.ErrDenied):
		return "compare origination.asterisk.username and .secret with the user's section in manager.conf, and its permit and deny with this address"
	case errors.As(err, &refusal) && strings.Contains(strings.ToLower(refusal.Message), "permission"):
		return "the user's section in manager.conf needs read = call and write = originate,call,reporting"
	}
	return ""
}

func (d *Driver) remember(c *call) {
	d.calls[c.id] = c
	d.metrics.calls.Set(float64(len(d.calls)))
}

func (d *Driver) forget(c *call) {
	delete(d.calls, c.id)
	d.metrics.calls.Set(float64(len(d.calls)))
}
