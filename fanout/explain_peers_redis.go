package fanout

import (
	"context"
	"encoding/json"
	"slices"

	"trunkline/internal/redisclient"
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

func (p RedisPeers) questionsChannel() string { return p.Prefix + "fanout:questions" }

// Ask implements Peers.
func (p RedisPeers) Ask(ctx context.Context, node string,
	q Question) (answers []NodeAnswer, missing []string, err error) {
	missing, err = p.allNodes(ctx)
	missing = slices.DeleteFunc(missing, func(one string) bool { return one == node })
	if err != nil || len(missing) == 0 {
		return nil, missing, err
	}

	asking, err := redisclient.NewNodeQuestion(ctx, p.Client, p.Prefix+"fanout:answers:")
	if err != nil {
		return nil, missing, err
	}
	defer asking.Close()

	_, err = asking.Publish(ctx, p.questionsChannel(), peerQuestion{Node: node, ReplyTo: asking.ReplyTo, Question: q})
	if err != nil {
		return nil, missing, err
	}

	for len(missing) > 0 {
		var a NodeAnswer
		err := asking.Next(ctx, &a)
		if ctx.Err() != nil {
			// The time is over: nodes that did not answer are missing, which is no error.
			return answers, missing, nil
		}
		if err != nil {
			return answers, missing, err
		}

		answers = append(answers, a)
		missing = slices.DeleteFunc(missing, func(one string) bool { return one == a.Node })
	}

	return answers, nil, nil
}

// Answer implements Peers. An answer that cannot be sent makes this node one of the missing.
func (p RedisPeers) Answer(ctx context.Context, node string, answer func(*Question) NodeAnswer) {
	redisclient.Listen(ctx, p.Client, p.questionsChannel(), func(payload []byte) {
		var q peerQuestion
		if json.Unmarshal(payload, &q) != nil || q.Node == node {
			return // sent by a later version, or by this node
		}
		ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
		defer cancel()
		_ = redisclient.Reply(ctx, p.Client, q.ReplyTo, answer(&q.Question))
	})
}
