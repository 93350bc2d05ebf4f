package redisclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// subscribeTimeout bounds how long the subscription of a NodeQuestion takes where the context has no deadline.
const subscribeTimeout = 5 * time.Second

var errUnsubscribed = errors.New("the subscription has ended")

// NodeQuestion is a question of one node to others: it is published on a channel to which they Listen, and
// they Reply on a channel that only this question has. Values travel as JSON.
type NodeQuestion struct {
	ReplyTo string // the channel of the answers; it is part of the question

	client  redis.UniversalClient
	replies *redis.PubSub
}

// NewNodeQuestion subscribes to the answers of a question, on a channel with the prefix. The caller closes it.
func NewNodeQuestion(ctx context.Context, client redis.UniversalClient, prefix string) (*NodeQuestion, error) {
	q := &NodeQuestion{ReplyTo: prefix + uuid.NewString(), client: client}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(subscribeTimeout)
	}

	q.replies = client.Subscribe(ctx, q.ReplyTo)
	_, err := q.replies.ReceiveTimeout(ctx, time.Until(deadline)) // from here on no answer is missed
	if err != nil {
		_ = q.replies.Close()
		return nil, fmt.Errorf("subscribing to answers: %w", err)
	}

	return q, nil
}

// Close ends the subscription.
func (q *NodeQuestion) Close() { _ = q.replies.Close() }

// Publish sends the question and returns how many nodes listen.
func (q *NodeQuestion) Publish(ctx context.Context, channel string, question any) (listeners int64, err error) {
	text, err := json.Marshal(question)
	if err != nil {
		return 0, err
	}

	server, err := serverOf(ctx, q.client, channel)
	if err == nil {
		listeners, err = server.Publish(ctx, channel, text).Result()
	}
	if err != nil {
		return 0, fmt.Errorf("asking the other nodes: %w", err)
	}

	return listeners, nil
}

// serverOf returns the server at which go-redis subscribes to a channel. In a cluster a message reaches
// the subscribers at all servers, but the answer to PUBLISH counts only those at the server that was asked,
// and go-redis asks any.
func serverOf(ctx context.Context, client redis.UniversalClient, channel string) (redis.UniversalClient, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return client, nil
	}
	return cluster.MasterForKey(ctx, channel)
}

// Next waits for the next answer. It returns the error of ctx if that ends first.
func (q *NodeQuestion) Next(ctx context.Context, answer any) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	// Channel returns the same channel at each call.
	case message, ok := <-q.replies.Channel():
		if !ok {
			return errUnsubscribed
		}
		if err := json.Unmarshal([]byte(message.Payload), answer); err != nil {
			return fmt.Errorf("reading the answer of a node: %w", err)
		}

		return nil
	}
}

// Listen calls hear with each message of a channel, one after the other, until ctx ends. While Redis is
// away there are none; go-redis subscribes again when it is back.
func Listen(ctx context.Context, client redis.UniversalClient, channel string, hear func(payload []byte)) {
	subscription := client.Subscribe(ctx, channel)
	defer func() { _ = subscription.Close() }()

	incoming := subscription.Channel()
	for {
		select {
		case <-ctx.Done():
			return
		case message, ok := <-incoming:
			if !ok {
				return
			}
			hear([]byte(message.Payload))
		}
	}
}

// Reply publishes an answer on the channel of its question.
func Reply(ctx context.Context, client redis.UniversalClient, replyTo string, answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return client.Publish(ctx, replyTo, text).Err()
}
