package asterisk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"trunkline/internal/panics"
	"trunkline/internal/setting"
	"trunkline/origination"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/ami"
)

// Driver places calls on one Asterisk; it is an origination.Driver and Adopter.
type Driver struct {
	*eventdriver.Driver[*call, *ami.Conn]
}

var (
	_ origination.Driver  = (*Driver)(nil)
	_ origination.Adopter = (*Driver)(nil)
)

// New checks the configuration. The driver places calls while Follow runs.
func New(cfg Config, deps eventdriver.Deps) (*Driver, error) {
	if err := setting.Validate("origination.asterisk", cfg.Settings); err != nil {
		return nil, err
	}

	manager, err := cfg.managerConfig()
	if err != nil {
		return nil, err
	}

	recoverer := panics.New(deps.Metrics, deps.Log)
	client, err := ami.New(manager, ami.Deps{Log: deps.Log, Metrics: deps.Metrics, Panics: recoverer})
	if err != nil {
		return nil, err
	}

	return &Driver{eventdriver.New(eventdriver.Config{
		Limits: cfg.Limits, Name: "asterisk", Connection: "manager interface", Address: cfg.Address,
		RingUser: cfg.RingUser,
	}, &platform{cfg: cfg, client: client, log: deps.Log}, deps, recoverer)}, nil
}

// platform implements eventdriver.Platform.
type platform struct {
	cfg    Config
	client *ami.Client
	log    *slog.Logger
}

// eventFilters select the events of our calls by their Linkedid and ActionID.
var eventFilters = []string{"Linkedid: [A-Za-z0-9._-]+" + ownerSuffix, "ActionID: [A-Za-z0-9._-]+" + originateSuffix}

func (p *platform) Connect(ctx context.Context) (*ami.Conn, error) {
	conn, err := p.client.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.filter(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// filter restricts the events to those of our calls if the user has the privilege.
func (p *platform) filter(ctx context.Context, conn *ami.Conn) error {
	for _, text := range eventFilters {
		_, err := conn.Do(ctx,
			ami.Action{Name: "Filter",
				Fields: []ami.Field{{Key: "Operation", Value: "Add"}, {Key: "Filter", Value: text}}})
		if _, ok := errors.AsType[*ami.Refusal](err); ok {
			p.log.InfoContext(ctx, "manager interface connected without a filter: the events of all calls are read",
				"address", p.cfg.Address, "error", err)
			return nil
		}

		if err != nil {
			return err
		}
	}

	p.log.InfoContext(ctx, "manager interface connected", "address", p.cfg.Address)
	return nil
}

func (p *platform) NewCall(c eventdriver.Call) *call {
	return &call{
		Call: c, ownerAnswered: c.State.Rank() >= origination.UserAnswered.Rank(),
		destinationAnswered: c.State == origination.Bridged,
	}
}

func (p *platform) Key(callID string) string { return callID }

func (p *platform) Prepare(_ context.Context, _ *ami.Conn,
	order origination.Order) (func(context.Context, *ami.Conn) error, error) {
	action, err := p.cfg.originateAction(order)
	return func(ctx context.Context, conn *ami.Conn) error {
		_, err := conn.Do(ctx, action)
		return err
	}, err
}

// HangUp ends a channel. Asterisk accepts the unique id in place of the name.
func (p *platform) HangUp(ctx context.Context, conn *ami.Conn, channel string) error {
	_, err := conn.Do(ctx, ami.Action{Name: "Hangup", Fields: []ami.Field{{Key: "Channel", Value: channel}}})
	if refusal, ok := errors.AsType[*ami.Refusal](err); ok && strings.EqualFold(refusal.Message, "No such channel") {
		return nil
	}
	return err
}

func (p *platform) Events(conn *ami.Conn) (events []eventdriver.Observation[*call]) {
	for _, e := range conn.Take() {
		events = append(events, observe(e))
	}
	return events
}

func (p *platform) List(ctx context.Context, conn *ami.Conn, _ string) ([]eventdriver.Observation[*call], error) {
	rows, err := conn.List(ctx, "CoreShowChannels")
	if err != nil {
		return nil, fmt.Errorf("listing the channels: %w", err)
	}

	var channels []eventdriver.Observation[*call]
	for _, row := range rows {
		id, ours := strings.CutSuffix(row.Get("Uniqueid"), ownerSuffix)
		if ours {
			channels = append(channels, eventdriver.Observation[*call]{
				Keys: []string{id}, Apply: func(c *call) eventdriver.Change { return c.applyRow(row) },
			})
		}
	}

	return channels, nil
}

// Exists returns false: the list has all channels.
func (p *platform) Exists(context.Context, *ami.Conn, []string) (bool, error) { return false, nil }

// Explain returns advice about manager.conf.
func (p *platform) Explain(err error) (failure eventdriver.Failure, advice string) {
	var refusal *ami.Refusal
	switch {
	case errors.Is(err, ami.ErrLoginDenied):
		return eventdriver.LoginDenied,
			"compare origination.asterisk.username and .secret with the user's section in manager.conf, and its permit and deny with this address"
	case errors.As(err, &refusal) && strings.Contains(strings.ToLower(refusal.Message), "permission"):
		return eventdriver.Refused,
			"the user's section in manager.conf needs read = call and write = originate,call,reporting"
	case errors.As(err, &refusal):
		return eventdriver.Refused, ""
	case errors.Is(err, ami.ErrBusy), errors.Is(err, ami.ErrInvalidAction), errors.Is(err, ami.ErrDuplicateID):
		return eventdriver.NotSent, ""
	}

	return eventdriver.Unanswered, ""
}
