package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
	"trunkline/origination"
	"trunkline/origination/asterisk"
	"trunkline/origination/eventdriver"
	"trunkline/origination/freeswitch"
	"trunkline/origination/kazoo"
	"trunkline/origination/pbx"
	"trunkline/origination/simulator"
	"trunkline/settings"
	"trunkline/telephony/sip"
)

// errNoSIP is returned for the SIP driver without a SIP server.
var errNoSIP = errors.New("the driver sip needs sip.listen")

// buildOrigination builds click to call with the configured platform; nil: it is off.
func buildOrigination(ctx context.Context, b *base, phones *phones, ai aiSessions, admission *origination.Admission) (
	*origination.Service, error) {
	if !b.hasRole(settings.RoleOrigination) {
		return nil, nil
	}

	s := b.settings.Origination
	producer := b.newProducer("origination's producer", kafka.ProducerConfig{})
	driver, err := originationDriver(b, phones, ai, admission, producer)
	if errors.Is(err, errNoSIP) && s.Driver == "" {
		b.log.Warn("click to call off: set origination.driver to the phone platform, or sip.listen for the driver sip")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("origination.driver: %w", err)
	}

	calls, err := origination.New(ctx, origination.Config{
		Settings: s.Settings, Node: b.node, SingleNode: !b.db.Postgres(),
	}, origination.Deps{
		DB: b.db, Driver: driver, Users: b.identity.Directory, Admission: admission,
		Publisher: callEventPublisher{producer, b.tracer}, Audit: b.audit, Metrics: b.registry, Log: b.log,
		Tracer: b.tracer,
	})
	if err != nil {
		return nil, fmt.Errorf("origination: %w", err)
	}

	b.lifecycle.addRun("origination", calls.Run)
	b.health.addReadyPart("origination", calls.Ready)
	return calls, nil
}

// originationDriver returns the driver of the configured platform.
func originationDriver(b *base, phones *phones, ai aiSessions, admission *origination.Admission,
	producer *kafka.Producer) (origination.Driver, error) {
	s := b.settings.Origination
	limits, deps := eventdriver.Limits{MaxCalls: s.MaxCalls}, eventdriver.Deps{Log: b.log, Metrics: b.registry}
	switch s.Driver {
	case "", origination.DriverSIP:
		return sipDriver(b, phones, ai, admission, producer)
	case origination.DriverAsterisk:
		return asterisk.New(asterisk.Config{Settings: s.Asterisk, Limits: limits}, deps)
	case origination.DriverFreeSWITCH:
		return freeswitch.New(freeswitch.Config{Settings: s.FreeSWITCH, Limits: limits}, deps)
	case origination.DriverKazoo:
		return kazoo.New(kazoo.Config{Settings: s.Kazoo}, http.DefaultClient, b.log)
	}

	simulatedCalls := "all calls"
	if s.Driver == origination.DriverAuto && phones != nil {
		simulatedCalls = "calls of users without a registered phone"
	}

	b.log.Warn("call simulator on: no phone rings, call records and events are invented", "driver", s.Driver,
		"simulates", simulatedCalls)
	simulatorDriver, err := simulator.New(simulator.Config{MaxCalls: s.MaxCalls},
		platformPublisher{producer, simulator.MediaServer}, b.registry, b.log)
	if err != nil || s.Driver == origination.DriverSimulator || phones == nil {
		return simulatorDriver, err
	}

	// DriverAuto with SIP: registered phones ring, and the simulator has the calls of the other users.
	ownPBX, err := sipDriver(b, phones, ai, admission, producer)
	return &origination.AutoDriver{Phones: ownPBX, Simulator: simulatorDriver,
		Registered: phones.server.Registrations.Exist,
		Simulated:  simulator.Simulated}, err
}

// sipDriver returns the driver of Trunkline's own PBX, which also handles the calls from phones and
// trunks.
func sipDriver(b *base, phones *phones, ai aiSessions, admission *origination.Admission,
	producer *kafka.Producer) (*pbx.Driver, error) {
	if phones == nil {
		return nil, errNoSIP
	}

	name, err := os.Hostname()
	if err != nil {
		name = "trunkline"
	}

	driver, err := pbx.New(pbx.Config{
		Settings: b.settings.SIP.Calls, MediaServer: name, Encryption: sip.Encryption(b.settings.SIP.Server.SRTP),
		Recorder: ai.recorders,
	}, phones.server, phones.ports, phones.directory, ai.onSIP, admission,
		platformPublisher{producer, "sip"}, b.registry, b.log)
	if err != nil {
		return nil, err
	}

	phones.server.Handle("", driver)
	phones.server.Registrations.AddListener(driver)
	b.lifecycle.addRun("sip driver", driver.Run)

	return driver, nil
}

// callEventPublisher produces the progress of calls to the raw topic, from which it reaches the
// channel.
type callEventPublisher struct {
	producer *kafka.Producer
	tracer   *tracing.Tracer
}

// Publish implements origination.Publisher.
func (e callEventPublisher) Publish(ctx context.Context, events ...origination.Event) error {
	records, spans := make([]kafka.Record, len(events)), make([]tracing.Span, len(events))
	for i, callEvent := range events {
		records[i] = rawRecord(event.TopicRaw, event.FormatOwn, "origination", callEvent.AccountID, callEvent.Data)
		if e.tracer != nil { // each span belongs to the trace of its call
			_, spans[i] = startSendSpan(callEvent.Trace.Extract(ctx), e.tracer, &records[i])
			spans[i].Set(tracing.Account(callEvent.AccountID),
				tracing.Text("trunkline.call.state", string(callEvent.State)))
		}
	}

	err := e.producer.Produce(ctx, records...)
	for _, span := range spans {
		span.End(err)
	}

	return err
}

// platformPublisher produces the call records of Trunkline's own phone platform to the raw
// topics, like those of every platform.
type platformPublisher struct {
	producer *kafka.Producer
	source   string // the records' header, as "sip"
}

// PublishCDR implements simulator.RecordPublisher.
func (p platformPublisher) PublishCDR(ctx context.Context, accountID string, row event.CDR) error {
	value, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("writing a call record: %w", err)
	}
	return p.producer.Produce(ctx, rawRecord(event.TopicCDRRaw, "svc.cdr", p.source, accountID, value))
}

// PublishEvent implements simulator.RecordPublisher.
func (p platformPublisher) PublishEvent(ctx context.Context, accountID string, data []byte) error {
	return p.producer.Produce(ctx, rawRecord(event.TopicRaw, "generic", p.source, accountID, data))
}
