package freeswitch

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"trunkline/internal/panics"
	"trunkline/internal/setting"
	"trunkline/origination"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// Driver places calls on one FreeSWITCH; it is an origination.Driver and Adopter.
type Driver struct {
	*eventdriver.Driver[*call, *connection]
	platform *platform
}

var (
	_ origination.Driver  = (*Driver)(nil)
	_ origination.Adopter = (*Driver)(nil)
)

// New checks the configuration. The driver places calls while Follow runs.
func New(cfg Config, deps eventdriver.Deps) (*Driver, error) {
	if err := setting.Validate("origination.freeswitch", cfg.Settings); err != nil {
		return nil, err
	}

	recoverer := panics.New(deps.Metrics, deps.Log)
	client, err := esl.New(cfg.socketConfig(), esl.Deps{Log: deps.Log, Metrics: deps.Metrics, Panics: recoverer})
	if err != nil {
		return nil, err
	}

	m := newMetrics(deps.Metrics)
	p := &platform{cfg: cfg, client: client, log: deps.Log, metrics: m, pace: newPacer(queueTimeout, m, deps.Log)}
	return &Driver{eventdriver.New(eventdriver.Config{
		Limits: cfg.Limits, Name: "freeswitch", Connection: "event socket", Address: cfg.Address,
		RingUser: cfg.RingUser,
	}, p, deps, recoverer), p}, nil
}

// platform implements eventdriver.Platform. The key of a call is its job.
type platform struct {
	cfg     Config
	client  *esl.Client
	log     *slog.Logger
	metrics *metrics
	pace    *pacer
}

func (p *platform) NewCall(c eventdriver.Call) *call {
	return &call{Call: c, legs: make(map[string]*leg)}
}

func (p *platform) Key(callID string) string { return jobOf(callID) }

func (p *platform) Prepare(ctx context.Context, s *connection,
	order origination.Order) (func(context.Context, *connection) error, error) {
	where, err := p.domainOf(ctx, s, order.Domain, order.Extension)
	if err != nil {
		return nil, err
	}

	order.Domain = where
	command, err := p.cfg.originateCommand(order)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, s *connection) error {
		return s.Background(ctx, command, jobOf(order.ID))
	}, p.pace.wait(ctx)
}

func (p *platform) HangUp(ctx context.Context, conn *connection, channel string) error {
	_, err := conn.API(ctx, "uuid_kill "+channel+" "+origination.CauseCancelled)
	// the case differs between versions
	if refusal, ok := errors.AsType[*esl.Refusal](err); ok &&
		strings.EqualFold(refusal.Reply, "-ERR No such channel!") {
		return nil
	}
	return err
}

// Explain returns advice about event_socket.conf.xml.
func (p *platform) Explain(err error) (failure eventdriver.Failure, advice string) {
	var refusal *esl.Refusal
	switch {
	case errors.Is(err, esl.ErrLoginDenied):
		return eventdriver.LoginDenied, "compare origination.freeswitch.user and .password with event_socket.conf.xml"
	case errors.Is(err, esl.ErrRejected):
		return eventdriver.LoginDenied, "apply-inbound-acl in event_socket.conf.xml must include this address"
	case errors.As(err, &refusal):
		return eventdriver.Refused, ""
	case errors.Is(err, esl.ErrBusy), errors.Is(err, esl.ErrInvalidCommand):
		return eventdriver.NotSent, ""
	}

	return eventdriver.Unanswered, ""
}
