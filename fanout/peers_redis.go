package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// RedisPeers carries questions between nodes over Redis: a question is published on a
// channel that every node listens to, and the answers on a channel of the asker's own.
type RedisPeers struct{ *RedisPresence }

// peerQuestion is the message of the channel of questions.
type peerQuestion struct {
	Node     string   `json:"node"` // that asks, "" when it has no connections
	ReplyTo  string   `json:"reply_to"`
	Question Question `json:"question"`
}

func (p RedisPeers) questions() string { return p.Prefix + "fanout:questions" }

// Ask implements Peers.
func (p RedisPeers) Ask(ctx context.Context, node string, q Question) (answers []NodeAnswer, missing []string, err error) {
	missing, err = p.allNodes(ctx)
	missing = slices.DeleteFunc(missing, func(one string) bool { return one == node })
	if err != nil || len(missing) == 0 {
		return nil, missing, err
	}
	asked := peerQuestion{Node: node, ReplyTo: p.Prefix + "fanout:answers:" + uuid.NewString(), Question: q}
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, missing, err
	}
	replies := p.Client.Subscribe(ctx, asked.ReplyTo)
	defer replies.Close()
	if err := subscribed(ctx, replies); err != nil {
		return nil, missing, fmt.Errorf("subscribing to answers: %w", err)
	}
	if err := p.Client.Publish(ctx, p.questions(), text).Err(); err != nil {
		return nil, missing, fmt.Errorf("asking the other nodes: %w", err)
	}
	incoming := replies.Channel()
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			return answers, missing, nil
		case reply, ok := <-incoming:
			if !ok {
				return answers, missing, nil
			}
			var a NodeAnswer
			if err := json.Unmarshal([]byte(reply.Payload), &a); err != nil {
				return answers, missing, fmt.Errorf("reading the answer of a node: %w", err)
			}
			answers = append(answers, a)
			missing = slices.DeleteFunc(missing, func(one string) bool { return one == a.Node })
		}
	}
	return answers, nil, nil
}

// subscribed waits until the subscription works: what is published later is received.
func subscribed(ctx context.Context, s *redis.PubSub) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(presenceWait)
	}
	_, err := s.ReceiveTimeout(ctx, time.Until(deadline))
	return err
}

// Answer implements Peers. While Redis is away there are no questions; go-redis
// subscribes again when it is back.
func (p RedisPeers) Answer(ctx context.Context, node string, answer func(*Question) NodeAnswer) {
	asked := p.Client.Subscribe(ctx, p.questions())
	defer asked.Close()
	incoming := asked.Channel()
	for {
		select {
		case <-ctx.Done():
			return
		case message, ok := <-incoming:
			if !ok {
				return
			}
			var q peerQuestion
			if json.Unmarshal([]byte(message.Payload), &q) != nil || q.Node == node {
				continue // of a later version, or this node's own
			}
			if text, err := json.Marshal(answer(&q.Question)); err == nil {
				p.reply(ctx, q.ReplyTo, text)
			}
		}
	}
}

// reply publishes an answer. Where that fails, the asker says that this node did not
// answer.
func (p RedisPeers) reply(ctx context.Context, to string, text []byte) {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	_ = p.Client.Publish(ctx, to, text).Err()
}
