package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// GroupConfig names a consumer group and its topics.
type GroupConfig struct {
	Group  string   // base name; the topic prefix applies to it too
	Topics []string // base names
}

// Times within which a group detects a dead member, a member that left, and new
// partitions.
const (
	sessionTimeout         = 6 * time.Second // the minimum that Kafka allows by default
	heartbeatInterval      = 300 * time.Millisecond
	rebalanceTimeout       = 15 * time.Second
	partitionCheckInterval = 2 * time.Second

	// GroupOverlap is the time after which a member has noticed that its partition was
	// assigned to another one, and has stopped, unless its whole process was
	// suspended.
	GroupOverlap = 10 * sessionTimeout

	joinBackoff   = 300 * time.Millisecond
	flushInterval = time.Second
	lagInterval   = 10 * time.Second
	leaveTimeout  = 5 * time.Second
)

// RunGroup takes part in a consumer group until ctx ends, then returns nil. It runs
// work in a goroutine for each assigned partition. The context of the assignment ends
// when the partition is revoked or ctx ends; work must then commit its finished
// offsets and return soon. If work returns earlier, RunGroup restarts it after a
// pause. While Kafka is unavailable, RunGroup waits.
func (c *Cluster) RunGroup(ctx context.Context, cfg GroupConfig, work func(context.Context, *Assignment) error) error {
	if cfg.Group == "" || len(cfg.Topics) == 0 {
		return fault.Invalid("a consumer group needs a name and topics")
	}

	g := &group{cluster: c, cfg: cfg, work: work, log: c.log.With("group", cfg.Group),
		memberChanged: make(chan struct{}, 1)}
	c.metrics.initGroup(cfg.Group)

	// Before the membership, whose join already asks for the topics.
	if !g.awaitTopics(ctx) {
		return nil
	}

	topics := make([]string, len(cfg.Topics))
	for i, t := range cfg.Topics {
		topics[i] = c.withPrefix(t)
	}

	member, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: c.withPrefix(cfg.Group), Brokers: c.cfg.Brokers, Dialer: c.dialer, Topics: topics,
		GroupBalancers:    []kafkago.GroupBalancer{&balancer{group: g}},
		HeartbeatInterval: cmp.Or(c.cfg.HeartbeatInterval, heartbeatInterval), SessionTimeout: sessionTimeout,
		RebalanceTimeout: rebalanceTimeout,
		JoinGroupBackoff: joinBackoff, StartOffset: kafkago.FirstOffset, Timeout: dialTimeout,
	})
	if err != nil {
		return fmt.Errorf("joining group %q: %w", cfg.Group, err)
	}

	// Closing the membership ends the generation, which ends the work, and then leaves
	// the group. It must come first: another generation would follow one that ended by
	// itself.
	leftGroup := make(chan struct{})
	cancelLeave := context.AfterFunc(ctx, func() {
		_ = member.Close() // it returns no errors
		close(leftGroup)
	})
	defer cancelLeave()

	var watching sync.WaitGroup
	watching.Go(func() { g.watchMembers(ctx) })
	defer watching.Wait()

	g.runGenerations(ctx, member)
	g.running.Wait()
	select {
	case <-leftGroup:
	case <-time.After(leaveTimeout): // the coordinator is unavailable: it will detect the missing member
		g.log.Warn("consumer group leave timed out")
	}

	return nil
}

type group struct {
	cluster *Cluster
	cfg     GroupConfig
	work    func(context.Context, *Assignment) error
	log     *slog.Logger
	running sync.WaitGroup // generations, and tasks that remove former members

	mu              sync.Mutex
	partitionCounts map[string]int // partitions of each topic at this member's last assignment of them
	member          string         // its id; "" before the first generation and while it cannot join
	memberChanged   chan struct{}  // signals a change of the member id
}

func (g *group) memberID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member
}

func (g *group) setMemberID(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.member != id {
		g.member = id
		select {
		case g.memberChanged <- struct{}{}:
		default:
		}
	}
}

// takeMemberID returns the id of this member and clears it.
func (g *group) takeMemberID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.member
	g.member = ""
	return id
}

// balancer assigns partitions round-robin and records their number, which reveals new
// partitions: kafka-go's own watch takes its first count some time after the
// assignment, and misses partitions created in between.
type balancer struct {
	kafkago.RoundRobinGroupBalancer
	group *group
}

// AssignGroups implements kafkago.GroupBalancer; the leader of the group calls it.
func (b *balancer) AssignGroups(members []kafkago.GroupMember,
	partitions []kafkago.Partition) kafkago.GroupMemberAssignments {
	counts := map[string]int{}
	for _, p := range partitions {
		counts[p.Topic]++
	}
	b.group.mu.Lock()
	b.group.partitionCounts = counts
	b.group.mu.Unlock()
	return b.RoundRobinGroupBalancer.AssignGroups(members, partitions)
}

// takePartitionCounts returns the partition counts if this member made the assignment of the
// new generation, else nil.
func (g *group) takePartitionCounts() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := g.partitionCounts
	g.partitionCounts = nil
	return counts
}

// awaitTopics waits until all topics exist: a broker with automatic topic creation
// would create them with wrong settings on an earlier join.
func (g *group) awaitTopics(ctx context.Context) bool {
	backoff := retry.Backoff{First: 100 * time.Millisecond, Max: joinBackoff}
	for i := 0; i < len(g.cfg.Topics); {
		_, err := g.cluster.Partitions(ctx, g.cfg.Topics[i])
		if err == nil {
			i++
			backoff.Reset()
			continue
		}

		if !backoff.Started() {
			g.log.Warn("waiting for a topic", "topic", g.cfg.Topics[i], "error", err)
		}
		if !backoff.Wait(ctx) {
			return false
		}
	}

	return ctx.Err() == nil
}

// runGenerations runs the generations of the group, one after the other.
func (g *group) runGenerations(ctx context.Context, member *kafkago.ConsumerGroup) {
	failing := false
	for {
		gen, err := member.Next(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, kafkago.ErrGroupClosed):
			return
		case err != nil:
			g.cluster.metrics.countError("group", reasonLabel(err))
			if !failing {
				g.log.Warn("joining the consumer group failed, retrying", "error", err)
			}

			failing = true
			if !errors.Is(err, kafkago.RebalanceInProgress) { // the member keeps its id during a rebalance
				former := g.takeMemberID()
				if former != "" {
					g.running.Go(func() { g.removeFormerMember(ctx, former) })
				}
			}

			continue // member.Next waits before it retries
		}

		failing = false
		g.cluster.metrics.rebalances.WithLabelValues(g.cfg.Group).Inc()
		g.setMemberID(gen.MemberID)
		s := newGeneration(g, gen)
		g.log.Info("consumer group generation", "generation", gen.ID, "partitions", len(s.assignments))
		// Not within the function, which may begin only after RunGroup waits.
		g.running.Add(1)

		gen.Start(func(generationCtx context.Context) {
			defer g.running.Done()
			s.run(ctx, generationCtx)
		})
	}
}
