package aisession

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
)

// RedisCallNodes implements CallNodes over Redis: all nodes hear an update, and each answers.
type RedisCallNodes struct {
	client redis.UniversalClient
	prefix string
	log    *slog.Logger
}

// NewRedisCallNodes returns nodes that use channels with the prefix. It does not close client.
func NewRedisCallNodes(client redis.UniversalClient, prefix string, log *slog.Logger) *RedisCallNodes {
	return &RedisCallNodes{client, prefix, log}
}

type callUpdateAsked struct {
	CallUpdate
	ReplyTo string `json:"reply_to"`
}

type callUpdateReply struct {
	Kind    fault.Kind `json:"kind,omitempty"` // "": done
	Message string     `json:"message,omitempty"`
}

func (n *RedisCallNodes) channel() string { return n.prefix + "aisession:updates" }

// Ask implements CallNodes.
func (n *RedisCallNodes) Ask(ctx context.Context, u CallUpdate) error {
	ctx, cancel := context.WithTimeout(ctx, callNodesTimeout)
	defer cancel()
	away := func(err error) error {
		return fault.Unavailable(err, time.Second, "The nodes with the calls do not answer")
	}
	asked := callUpdateAsked{u, n.prefix + "aisession:replies:" + uuid.NewString()}
	text, err := json.Marshal(asked)
	if err != nil {
		return fault.Internal(err, "The call could not be updated")
	}
	replies := n.client.Subscribe(ctx, asked.ReplyTo)
	defer replies.Close()
	_, err = replies.Receive(ctx)
	if err != nil {
		return away(err)
	}
	heard, err := n.client.Publish(ctx, n.channel(), text).Result()
	if err != nil {
		return away(err)
	}

	for range heard {
		select {
		case <-ctx.Done():
			return away(ctx.Err())
		case message, ok := <-replies.Channel():
			if !ok {
				return away(errors.New("the subscription ended"))
			}
			var answer callUpdateReply
			if err := json.Unmarshal([]byte(message.Payload), &answer); err != nil {
				return away(err)
			}
			if answer.Kind == "" {
				return nil
			}
			if answer.Kind != fault.KindNotFound {
				return &fault.Error{Kind: answer.Kind, Message: answer.Message}
			}
		}
	}
	return fault.NotFound("Call not found")
}

// Answer implements CallNodes.
func (n *RedisCallNodes) Answer(ctx context.Context, apply func(CallUpdate) error) {
	updates := n.client.Subscribe(ctx, n.channel())
	defer updates.Close()
	incoming := updates.Channel()
	for {
		select {
		case <-ctx.Done():
			return
		case message, ok := <-incoming:
			if !ok {
				return
			}
			n.applyAndReply(ctx, message.Payload, apply)
		}
	}
}

func (n *RedisCallNodes) applyAndReply(ctx context.Context, payload string, apply func(CallUpdate) error) {
	var asked callUpdateAsked
	if err := json.Unmarshal([]byte(payload), &asked); err != nil {
		n.log.WarnContext(ctx, "unreadable call update of another node", "error", err)
		return
	}
	var answer callUpdateReply
	if err := apply(asked.CallUpdate); err != nil {
		f := fault.As(err)
		answer = callUpdateReply{f.Kind, f.Message}
	}
	text, err := json.Marshal(answer)
	if err == nil {
		err = n.client.Publish(ctx, asked.ReplyTo, text).Err()
	}
	if err != nil {
		n.log.WarnContext(ctx, "answering a call update failed", "error", err)
	}
}
