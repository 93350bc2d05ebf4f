package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/uuid"

	"trunkline/api"
	"trunkline/config/settings"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
	"trunkline/origination"
	"trunkline/origination/freeswitch"
	"trunkline/origination/kazoo"
	"trunkline/origination/simulator"
	"trunkline/telephony/localcall"
	"trunkline/telephony/pbx"
)

// errNoSIP is the error of a SIP driver without a SIP server.
var errNoSIP = errors.New("the driver sip needs sip.listen")

// buildOrigination builds click to call over the phone platform that the
// settings name.
func (a *App) buildOrigination(ctx context.Context, phones *phones, sessions localcall.Destination, deps *api.Deps) error {
	if !a.has(settings.RoleOrigination) {
		return nil
	}
	s := a.settings.Origination
	producer := a.newProducer("origination's producer", kafka.ProducerConfig{})
	rules, err := origination.ParseRules(origination.RuleTexts{
		Allow: s.Allow, Deny: s.Deny, AccountAllow: s.AccountAllow, AccountDeny: s.AccountDeny,
	})
	if err != nil {
		return fmt.Errorf("origination: %w", err)
	}
	driver, err := a.originationDriver(phones, sessions, producer, rules)
	if errors.Is(err, errNoSIP) && s.Driver == "" {
		a.log.Warn("click to call off: set origination.driver to the phone platform, or sip.listen for the driver sip")
		return nil
	}
	if err != nil {
		return fmt.Errorf("origination.driver: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	calls, err := origination.New(ctx, origination.Config{
		Node: host + "-" + uuid.NewString(), Alone: !a.db.Postgres(), Rules: rules,
		PerMinute: s.UserPerMinute, MaxCalls: s.MaxCalls, Retention: s.Retention,
	}, origination.Deps{
		DB: a.db, Driver: driver, Users: a.identity, Limiter: a.limiter,
		Publisher: callEvents{producer, a.tracer}, Metrics: a.registry, Log: a.log, Tracer: a.tracer,
	})
	if err != nil {
		return fmt.Errorf("origination: %w", err)
	}
	a.life.runs("origination", calls.Run)
	deps.Calls = calls
	return nil
}

// originationDriver returns the driver of the configured platform.
func (a *App) originationDriver(phones *phones, sessions localcall.Destination, producer *kafka.Producer, rules *origination.Rules) (origination.Driver, error) {
	s := a.settings.Origination
	switch s.Driver {
	case "", "sip":
		return a.sipDriver(phones, sessions, producer, rules)
	case "freeswitch":
		return a.freeswitchDriver()
	case "kazoo":
		accounts, err := s.Kazoo.AccountMap()
		if err != nil {
			return nil, err
		}
		return kazoo.New(kazoo.Config{URL: s.Kazoo.URL, APIKey: string(s.Kazoo.APIKey), Accounts: accounts}, http.DefaultClient, a.log)
	}
	simulates := "all calls"
	if s.Driver == "auto" && phones != nil {
		simulates = "calls of users without a registered phone"
	}
	a.log.Warn("call simulator on: no phone rings, call records and events are invented", "driver", s.Driver, "simulates", simulates)
	simulated, err := simulator.New(simulator.Config{MaxCalls: s.MaxCalls}, platformRecords{producer, simulator.MediaServer}, a.log)
	if err != nil || s.Driver == "simulator" || phones == nil {
		return simulated, err
	}
	rung, err := a.sipDriver(phones, sessions, producer, rules)
	return &origination.Auto{Phones: rung, Simulator: simulated, Registered: phones.server.Registered,
		Simulated: simulator.Simulated}, err
}

// sipDriver also takes the calls that phones and trunks make.
func (a *App) sipDriver(phones *phones, sessions localcall.Destination, producer *kafka.Producer, rules *origination.Rules) (*pbx.Driver, error) {
	if phones == nil {
		return nil, errNoSIP
	}
	s := a.settings.SIP
	name, err := os.Hostname()
	if err != nil {
		name = "trunkline"
	}
	driver, err := pbx.New(pbx.Config{
		MediaServer: name, OwnerTimeout: s.RingUser, DestinationTimeout: s.RingDestination, MaxCalls: s.MaxCalls,
		Trunk:   trunk(s.Trunk),
		MayDial: func(accountID, number string) bool { return rules.Check(accountID, number) == nil },
	}, phones.server, phones.ports, phones.directory, sessions, platformRecords{producer, "sip"}, a.registry, a.log)
	if err != nil {
		return nil, err
	}
	phones.server.Handle("", driver)
	phones.server.Watch(driver)
	a.life.runs("sip driver", driver.Run)
	return driver, nil
}

func trunk(t settings.SIPTrunk) pbx.Trunk {
	if t.Address == "" {
		return pbx.Trunk{}
	}
	return pbx.Trunk{Address: t.Address, Transport: strings.ToUpper(t.Transport), Username: t.Username,
		Password: string(t.Password), CallerID: t.CallerID, StripPrefix: t.StripPrefix}
}

func (a *App) freeswitchDriver() (*freeswitch.Driver, error) {
	f := a.settings.Origination.FreeSWITCH
	return freeswitch.New(freeswitch.Config{
		Address: f.Address, User: f.User, Password: string(f.Password), Owner: f.Owner, Destination: f.Destination,
		Context: f.Context, Domain: f.Domain, CallerID: f.CallerID, CallerName: f.CallerName, Ringback: f.Ringback,
		OwnerTimeout: f.RingUser, DestinationTimeout: f.RingDestination, AllEvents: f.AllEvents,
		MaxCalls: a.settings.Origination.MaxCalls,
	}, freeswitch.Deps{Log: a.log, Metrics: a.registry})
}

// callEvents sends the progress of calls on its way to the channel.
type callEvents struct {
	producer *kafka.Producer
	tracer   *tracing.Tracer
}

// Publish implements origination.Publisher.
func (e callEvents) Publish(ctx context.Context, events ...origination.Event) error {
	records, spans := make([]kafka.Record, len(events)), make([]tracing.Span, len(events))
	for i, one := range events {
		records[i] = rawRecord(event.TopicRaw, event.FormatOwn, "origination", one.AccountID, one.Data)
		if e.tracer != nil { // each is a part of its own call's trace
			_, spans[i] = joined(one.Trace.In(ctx), e.tracer, &records[i])
			spans[i].Set(tracing.Account(one.AccountID), tracing.Text("trunkline.call.state", string(one.State)))
		}
	}
	err := e.producer.Produce(ctx, records...)
	for _, span := range spans {
		span.End(err)
	}
	return err
}

// platformRecords sends the call records of a phone platform of ours the way
// that every platform's records go.
type platformRecords struct {
	producer *kafka.Producer
	source   string
}

// PublishCDR implements simulator.Records.
func (p platformRecords) PublishCDR(ctx context.Context, accountID string, row event.CDR) error {
	value, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("writing a call record: %w", err)
	}
	return p.producer.Produce(ctx, rawRecord(event.TopicCDRRaw, "svc.cdr", p.source, accountID, value))
}

// PublishEvent implements simulator.Records.
func (p platformRecords) PublishEvent(ctx context.Context, accountID string, data []byte) error {
	return p.producer.Produce(ctx, rawRecord(event.TopicRaw, "generic", p.source, accountID, data))
}
