package freeswitch

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// channelRow is one row of "show channels as json".
type channelRow struct {
	UUID  string `json:"uuid"`
	Tag   string `json:"presence_data"`
	State string `json:"callstate"`
}

// List implements eventdriver.Platform. At a periodic comparison it also queries sessions-per-second,
// which can change while the switch runs.
func (p *platform) List(ctx context.Context, conn *connection,
	reason string) ([]eventdriver.Observation[*call], error) {
	if reason == eventdriver.ReasonPeriodic {
		_, err := p.queryRate(ctx, conn.Conn)
		if err != nil {
			return nil, err
		}
	}

	rows, err := p.listChannels(ctx, conn)
	if err != nil {
		return nil, err
	}

	var channels []eventdriver.Observation[*call]
	for _, side := range []string{tagDestination, tagOwner} { // see applyChannelState
		for _, r := range rows {
			tagSide, job, ok := readTag(r.Tag)
			if ok && tagSide == side {
				channels = append(channels, eventdriver.Observation[*call]{
					Keys:  []string{job},
					Apply: func(c *call) eventdriver.Change { return c.applyRow(r, side == tagOwner) },
				})
			}
		}
	}

	return channels, nil
}

// listChannels returns all channels with our tag, including those of other nodes' calls. If the switch
// refuses the command (a restricted user, no core database), the known channels are queried one at a
// time; calls of an earlier process cannot be found then.
func (p *platform) listChannels(ctx context.Context, conn *connection) ([]channelRow, error) {
	text, err := conn.API(ctx, "show channels like "+tagPrefix+" as json")
	if _, ok := errors.AsType[*esl.Refusal](err); ok {
		p.metrics.withoutTable.Inc()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	var table struct {
		Rows []channelRow `json:"rows"`
	}
	if json.Unmarshal([]byte(text), &table) != nil {
		p.metrics.withoutTable.Inc()
		return nil, nil
	}

	return table.Rows, nil
}

// applyRow applies a row of the table.
func (c *call) applyRow(r channelRow, owner bool) eventdriver.Change {
	if r.State == "HANGUP" {
		return eventdriver.Change{Outdated: true}
	}
	l := c.findOrAddLeg(r.UUID, owner)
	if l == nil || l.ended {
		return eventdriver.Change{Outdated: true}
	}
	return eventdriver.Change{Steps: c.applyChannelState(l, r.State), Channel: r.UUID}
}

// applyChannelState applies the Channel-Call-State of a leg.
func (c *call) applyChannelState(l *leg, state string) []origination.State {
	up := state == "ACTIVE" || state == "HELD" || state == "UNHELD" || state == "RING_WAIT"
	switch {
	case !l.ofOwner:
		c.destinationAnswered = c.destinationAnswered || up
		return c.advanceDestination(true)
	case up:
		l.answered = true
		steps := c.Advance(origination.UserAnswered)

		// The owner's leg is in RING_WAIT while it waits for the destination, whose state was applied
		// before; ACTIVE then means joined.
		if c.destinationAnswered && state != "RING_WAIT" {
			c.ownerBridged = true
			steps = append(steps, c.Advance(origination.Bridged)...)
		}

		return steps
	case state == "RINGING" || state == "EARLY":
		return c.Advance(origination.RingingUser)
	}

	return nil
}

// Exists queries each channel by its id, because the table lags behind.
func (p *platform) Exists(ctx context.Context, conn *connection, channels []string) (bool, error) {
	for _, channel := range channels {
		text, err := conn.API(ctx, "uuid_exists "+channel)
		if strings.TrimSpace(text) == "true" {
			return true, nil
		}

		var refusal *esl.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return false, err
		}
	}

	return false, nil
}
