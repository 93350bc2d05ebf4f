package kafka

import (
	"context"
	"errors"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/retry"
)

// Liveness lets members of a consumer group detect a dead member sooner than Kafka's
// session timeout, which brokers limit to at least 6 s.
type Liveness interface {
	// Report increments the count of a member ("": of none) and returns the counts of
	// all members of the group.
	Report(ctx context.Context, group, member string) (map[string]int64, error)
	// Forget removes a member.
	Forget(ctx context.Context, group, member string) error
}

const (
	reportInterval = 300 * time.Millisecond
	// memberTimeout is the time for which a member's count must remain unchanged before others
	// remove the member from the group.
	memberTimeout = 1500 * time.Millisecond
	// maxReportGap is the time between two reports above which this process cannot decide
	// whether others are silent: it was stopped, or Redis was unavailable.
	maxReportGap = 900 * time.Millisecond
)

// watchMembers reports this member, and removes silent members from the group, so that
// their partitions are assigned again. A removed member that is alive joins again; as
// with session timeouts, two members may process a partition for a while, which must
// be harmless.
func (g *group) watchMembers(ctx context.Context) {
	liveness := g.cluster.cfg.Liveness
	if liveness == nil {
		return
	}

	name := g.cluster.withPrefix(g.cfg.Group)
	silences := silenceDetector{}
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()

	for {
		ownID := g.memberID()
		counts, err := g.reportAlive(ctx, liveness, name, ownID)
		if ctx.Err() != nil {
			break
		}

		if err != nil {
			g.log.Debug("reporting a group member failed", "error", err)
		} else {
			for _, member := range silences.update(time.Now(), counts, ownID) {
				g.removeSilentMember(ctx, member)
			}
		}

		select {
		case <-ctx.Done():
		case <-g.memberChanged:
			continue
		case <-tick.C:
			continue
		}

		break
	}

	// This member leaves by itself: others need not find it silent and remove it a second time.
	forgetCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()

	own := g.memberID()
	if own != "" {
		if err := liveness.Forget(forgetCtx, name, own); err != nil {
			g.log.Debug("removing the report of a group member failed", "error", err)
		}
	}
}

func (g *group) reportAlive(ctx context.Context, liveness Liveness, name, ownID string) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return liveness.Report(ctx, name, ownID)
}

func (g *group) removeSilentMember(ctx context.Context, member string) {
	err := g.removeMember(ctx, member)
	if err == nil {
		g.log.Warn("silent member removed from the consumer group", "member", member)
	} else if !errors.Is(err, kafkago.UnknownMemberId) {
		// tried again
		g.log.Warn("removing a silent member from the consumer group failed", "member", member, "error", err)
	}
}

// removeFormerMember removes the former membership of this process from the group; it
// retries until ctx ends. kafka-go drops its member id when it cannot join, and joins
// as a new member; without the removal the group would wait for the former member
// until the session timeout.
func (g *group) removeFormerMember(ctx context.Context, member string) {
	backoff := retry.Backoff{First: joinBackoff, Max: joinBackoff}
	for {
		err := g.removeMember(ctx, member)
		if err == nil {
			g.log.Info("former member removed from the consumer group", "member", member)
		}
		if err == nil || errors.Is(err, kafkago.UnknownMemberId) || !backoff.Wait(ctx) {
			return
		}
	}
}

// removeMember removes a member from the group and then its report. The error is
// kafkago.UnknownMemberId if the group no longer has the member.
func (g *group) removeMember(ctx context.Context, member string) error {
	ctx, cancel := context.WithTimeout(ctx, smallRequestTimeout)
	defer cancel()

	name := g.cluster.withPrefix(g.cfg.Group)
	leaveErr := g.cluster.removeMember(ctx, name, member)
	// The report of a member that may still be in the group must stay, or nobody finds it silent again.
	if leaveErr != nil && !errors.Is(leaveErr, kafkago.UnknownMemberId) {
		return leaveErr
	}

	liveness := g.cluster.cfg.Liveness
	if liveness != nil {
		if err := liveness.Forget(ctx, name, member); err != nil {
			g.log.Debug("removing the report of a group member failed", "error", err)
		}
	}

	return leaveErr
}

func (c *Cluster) removeMember(ctx context.Context, group, member string) error {
	client, closeClient := c.newAdminClient()
	defer closeClient()

	res, err := client.LeaveGroup(ctx,
		&kafkago.LeaveGroupRequest{GroupID: group, Members: []kafkago.LeaveGroupRequestMember{{ID: member}}})
	if err != nil {
		return err
	}

	// kafka-go decodes the error code and the throttle time of the response in the
	// wrong order: the code is in the low 16 bits of the milliseconds.
	code := kafkago.Error(int16(res.Throttle.Milliseconds()))
	if code != 0 {
		return code
	}

	for _, m := range res.Members {
		if m.Error != nil {
			return m.Error
		}
	}

	return res.Error
}

// silenceDetector detects members that have stopped reporting.
type silenceDetector struct {
	updatedAt time.Time
	members   map[string]observedCount
}

type observedCount struct {
	count     int64
	changedAt time.Time // time of the last change
}

// update records the counts of all members and returns those, except own, that have
// been silent for too long.
func (s *silenceDetector) update(now time.Time, counts map[string]int64, ownID string) (silent []string) {
	reportsMissed := now.Sub(s.updatedAt) > maxReportGap
	s.updatedAt = now
	members := make(map[string]observedCount, len(counts))

	for member, count := range counts {
		observed, known := s.members[member]
		switch {
		// After missed reports every silence is measured anew: it may have been that of this process.
		case !known || reportsMissed || observed.count != count:
			observed = observedCount{count, now}
		case member != ownID && now.Sub(observed.changedAt) >= memberTimeout:
			silent = append(silent, member)
		}

		members[member] = observed
	}

	s.members = members
	return silent
}
