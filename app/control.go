package app

import (
	"context"
	"fmt"

	"trunkline/control"
	"trunkline/fanout"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/origination"
	"trunkline/settings"
)

// buildControl builds the actions on agents and calls: their endpoints with the roles api and origination, whose
// nodes serve all below /api/v2/calls, and with the role ingest the sending of those that other nodes ask for. feeds
// is nil without feeds, calls without click to call; nil: there is nothing to act on.
func buildControl(ctx context.Context, b *base, subscribers *fanout.Fanout, feeds *feed.Service,
	admission *origination.Admission, calls *origination.Service) (*control.Service, error) {
	asked := b.hasRole(settings.RoleAPI) || b.hasRole(settings.RoleOrigination)
	if len(b.settings.Feeds) == 0 && calls == nil || !asked && feeds == nil {
		return nil, nil
	}

	statuses, err := feed.NewStore(ctx, b.db)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	nodes := &control.RedisNodes{Client: b.redis, Prefix: b.settings.Redis.KeyPrefix, Node: b.node, Statuses: statuses,
		Log: b.log}
	if feeds != nil {
		nodes.Feeds = feeds
	}

	deps := control.Deps{
		DB: b.db, Roster: subscribers, Users: b.identity.Directory, Limiter: b.limiter,
		Destinations: transferRules{admission},
		Publisher: ownEventPublisher{b.newProducer("control's producer", kafka.ProducerConfig{}), "control",
			b.tracer},
		Nodes: nodes, Audit: b.audit, Metrics: b.registry, Log: b.log,
	}

	if calls != nil {
		deps.OwnCalls = calls
	}

	c, err := control.New(ctx, deps)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	if feeds != nil {
		b.lifecycle.addRun("control of other nodes",
			func(ctx context.Context) error { return nodes.Answer(ctx, c.SendOnce) })
	}
	if !asked {
		return nil, nil
	}

	b.lifecycle.addRun("control", c.Run)
	return c, nil
}

// transferRules implements control.Destinations: transfers obey the limits of click to call.
type transferRules struct{ admission *origination.Admission }

// Check implements control.Destinations.
func (t transferRules) Check(ctx context.Context, accountID, userID, destination string) error {
	if err := origination.ValidateDestination(destination); err != nil {
		return err
	}
	return t.admission.CheckDestination(ctx,
		origination.Attempt{Origin: origination.OriginREST, AccountID: accountID, UserID: userID}, destination)
}
