package freeswitch

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
	"trunkline/telephony/esl"
)

// Driver places calls on one FreeSWITCH; it is an origination.Driver.
type Driver struct {
	cfg     Config
	client  *esl.Client
	log     *slog.Logger
	metrics *metrics
	pace    *pacer
	adopted chan struct{} // signals that calls were taken over and have not been compared yet

	mu    sync.Mutex
	conn  *esl.Conn        // nil while disconnected
	epoch int              // number of conn; increases with each
	calls map[string]*call // unfinished calls by call id
	jobs  map[string]*call // unfinished calls by job

	switchDomain string            // what the switch says is its own; "" while there is no connection
	domains      map[string]string // cache: domain on the switch by the account's domain
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
	if err := setting.Validate("origination.freeswitch", cfg.Settings); err != nil {
		return nil, err
	}
	recoverer, err := panics.New(deps.Metrics, deps.Log)
	if err != nil {
		return nil, err
	}
	client, err := esl.New(cfg.socket(), esl.Deps{Log: deps.Log, Metrics: deps.Metrics, Panics: recoverer})
	if err != nil {
		return nil, err
	}
	m := newMetrics(deps.Metrics)
	return &Driver{
		cfg: cfg, client: client, log: deps.Log, metrics: m, pace: newPacer(queueTimeout, m, deps.Log),
		adopted: make(chan struct{}, 1), calls: make(map[string]*call), jobs: make(map[string]*call),
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
	where, err := d.domainOf(ctx, order.Domain, order.Extension)
	if err != nil {
		return err
	}
	order.Domain = where
	command, err := d.cfg.originate(order)
	if err != nil {
		return err
	}
	if err := d.pace.wait(ctx); err != nil {
		return err
	}
	c, conn, err := d.begin(order.ID)
	if err != nil {
		return err
	}
	err = conn.Background(ctx, command, c.job)
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var refusal *esl.Refusal
	switch {
	case errors.As(err, &refusal):
		d.forget(c)
		return &fault.Error{Kind: fault.KindRefused, Message: "the phone platform refused the call", Cause: err}
	case errors.Is(err, esl.ErrBusy), errors.Is(err, esl.ErrCommand):
		d.forget(c) // it was not sent
	default:
		// The switch may have received the command. The caller gets an error, so no phone may ring:
		// hang up every channel of the call.
		c.cancelled, c.unwanted = true, true
	}
	return fault.Unavailable(err, retryAfter, "the phone platform did not answer")
}

// begin adds a call before the switch can send events of it.
func (d *Driver) begin(id string) (*call, *esl.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.conn == nil:
		return nil, nil, fault.Unavailable(nil, retryAfter, "the phone platform cannot be reached")
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
	channels := c.alive()
	d.mu.Unlock()
	d.metrics.cancels.Inc()
	if conn == nil {
		return nil
	}
	for _, channel := range channels {
		if err := d.hangUp(ctx, conn, channel); err != nil {
			return err
		}
	}
	return nil
}

// hangUp ends one channel. It returns nil if the switch has no such channel or the connection is lost:
// Follow reconnects and the comparison then ends the call.
func (d *Driver) hangUp(ctx context.Context, conn *esl.Conn, channel string) error {
	_, err := conn.API(ctx, killCommand(channel))
	var refusal *esl.Refusal
	if errors.As(err, &refusal) && !strings.EqualFold(refusal.Reply, "-ERR No such channel!") { // the case differs between versions
		return &fault.Error{Kind: fault.KindRefused, Message: "the phone platform refused to end the call", Cause: err}
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

func killCommand(channel string) string { return "uuid_kill " + channel + " " + causeCancelled }

func (d *Driver) remember(c *call) {
	d.calls[c.id], d.jobs[c.job] = c, c
	d.metrics.calls.Set(float64(len(d.calls)))
}

func (d *Driver) forget(c *call) {
	delete(d.calls, c.id)
	delete(d.jobs, c.job)
	d.metrics.calls.Set(float64(len(d.calls)))
}
