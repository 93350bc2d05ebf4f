package app

import (
	"trunkline/fanout"
	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/stats/figures"
)

func buildFanout(b *base, figureStore *figures.Store) (*fanout.Fanout, error) {
	if !b.hasRole(settings.RoleFanout) && !b.hasRole(settings.RoleAPI) && !b.hasRole(settings.RoleOrigination) {
		return nil, nil
	}

	var presence fanout.Presence = fanout.NoPresence{}
	var peers fanout.Peers
	if b.hasRole(settings.RoleFanout) {
		presence = &fanout.RedisPresence{Client: b.redis, Prefix: b.settings.Redis.KeyPrefix}
		peers = b.peers()
	}

	f, err := fanout.New(fanout.Config{Settings: b.settings.Fanout, NodeID: b.node}, fanout.Deps{
		LogReader: kafka.NewLog(b.cluster), Auth: b.identity.Tokens, Directory: b.identity.Directory,
		Presence: presence,
		Limits:   fanout.NewRedisLimits(b.redis, b.settings.Redis.KeyPrefix), Figures: queueFigures{figureStore},
		Metrics: b.registry, Log: b.log, Tracer: b.tracer, Peers: peers,
	})
	if err != nil {
		return nil, err
	}

	b.lifecycle.addRun("fanout", f.Run)
	return f, nil
}

// peers sends requests about events to the other nodes with connections, and receives theirs.
func (b *base) peers() fanout.RedisPeers {
	return fanout.RedisPeers{RedisPresence: &fanout.RedisPresence{Client: b.redis, Prefix: b.settings.Redis.KeyPrefix}}
}
