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

// RedisPeers sends questions between nodes over Redis: a question is published on a
// channel to which every node subscribes, and the answers on a channel of the asking
// node.
type RedisPeers struct{ *RedisPresence }

// peerQuestion is a message on the channel of questions.
type peerQuestion struct {
	Node     string   `json:"node"` // the asking node; "" when it has no connections
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

// subscribed waits until the subscription is active: it receives all later messages.
func subscribed(ctx context.Context, s *redis.PubSub) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(presenceTimeout)
	}
	_, err := s.ReceiveTimeout(ctx, time.Until(deadline))
	return err
}

// Answer implements Peers. While Redis is unavailable there are no questions; go-redis
// subscribes again when Redis is back.
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
				continue // sent by a later version, or by this node
			}
			text, err := json.Marshal(answer(&q.Question))
			if err == nil {
				p.reply(ctx, q.ReplyTo, text)
			}
		}
	}
}

// reply publishes an answer. If that fails, the asking node reports this node as
// missing.
func (p RedisPeers) reply(ctx context.Context, to string, text []byte) {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	_ = p.Client.Publish(ctx, to, text).Err()
}
