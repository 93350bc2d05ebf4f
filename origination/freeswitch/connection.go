package freeswitch

import (
	"context"
	"sync"

	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// connection is one connection with the domains that the switch reported over it.
type connection struct {
	*esl.Conn
	switchDomain string // the switch's own; "" if it has none

	mu      sync.Mutex
	domains map[string]string // cache: domain on the switch by the account's domain
}

func (p *platform) Connect(ctx context.Context) (*connection, error) {
	conn, err := p.client.Dial(ctx)
	if err != nil {
		return nil, err
	}

	connected := &connection{Conn: conn, domains: make(map[string]string)}
	err = p.subscribe(ctx, conn)
	if err == nil {
		connected.switchDomain, err = p.queryDomainAndRate(ctx, conn)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}

	return connected, nil
}

// subscribe subscribes to the events of our calls.
func (p *platform) subscribe(ctx context.Context, conn *esl.Conn) error {
	if err := conn.Filter(ctx, "Channel-Presence-Data", "/^"+tagPrefix+"/"); err != nil {
		return err
	}
	if err := conn.Filter(ctx, "Job-Command", "originate"); err != nil {
		return err
	}
	return conn.Subscribe(ctx, "plain", subscribedEvents...)
}

func (p *platform) Events(conn *connection) (events []eventdriver.Observation[*call]) {
	for _, e := range conn.Take() {
		events = append(events, p.observe(e))
	}
	return events
}
