package redisclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
)

// holdersTimeout is the time within which all nodes answer.
const holdersTimeout = 3 * time.Second

// HolderRequests carries a request to the node that holds what it is about, such as a call in progress: all
// nodes hear it, and each answers.
type HolderRequests[Request any] struct {
	Client  redis.UniversalClient
	Channel string // of the requests; those of the answers begin with it
	Log     *slog.Logger
}

// holderRequest is a request on its way, and the channel of the answers to it.
type holderRequest[Request any] struct {
	Request Request `json:"request"`
	ReplyTo string  `json:"reply_to"`
}

// RemoteError is the answer of a node to a request: the error of carrying it out, with its kind and without its cause.
type RemoteError struct {
	Kind             fault.Kind `json:"kind,omitempty"` // "": no error
	Message          string     `json:"message,omitempty"`
	RetryAfterMillis int64      `json:"retry_after_ms,omitempty"`
}

// RemoteErrorOf returns the answer with the kind and the message of an error; nil is the answer without one.
func RemoteErrorOf(err error) RemoteError {
	if err == nil {
		return RemoteError{}
	}
	f := fault.As(err)
	return RemoteError{Kind: f.Kind, Message: f.Message, RetryAfterMillis: f.RetryAfter.Milliseconds()}
}

// Err returns the error; nil for none.
func (o RemoteError) Err() error {
	if o.Kind == "" {
		return nil
	}
	retryAfter := time.Duration(o.RetryAfterMillis) * time.Millisecond
	return &fault.Error{Kind: o.Kind, Message: o.Message, RetryAfter: retryAfter}
}

// Ask returns the error of the node that holds the request's object; notFound, of fault.KindNotFound, if
// none does; and fault.KindUnavailable if a node does not answer.
func (h *HolderRequests[Request]) Ask(ctx context.Context, request Request, notFound error) error {
	ctx, cancel := context.WithTimeout(ctx, holdersTimeout)
	defer cancel()

	unavailable := func(err error) error {
		return fault.Unavailable(err, time.Second, "A node of this service does not answer")
	}
	asking, err := NewNodeQuestion(ctx, h.Client, h.Channel+":replies:")
	if err != nil {
		return unavailable(err)
	}
	defer asking.Close()

	listeners, err := asking.Publish(ctx, h.Channel, holderRequest[Request]{request, asking.ReplyTo})
	if err != nil {
		return unavailable(err)
	}

	for range listeners {
		var outcome RemoteError
		if err := asking.Next(ctx, &outcome); err != nil {
			return unavailable(err)
		}
		if outcome.Kind != fault.KindNotFound {
			return outcome.Err()
		}
	}

	return notFound
}

// Answer calls apply with the requests of other nodes, each on a goroutine, until ctx ends and they have
// returned. apply returns fault.KindNotFound where this node does not hold the object.
func (h *HolderRequests[Request]) Answer(ctx context.Context, apply func(context.Context, Request) error) {
	var applying sync.WaitGroup
	defer applying.Wait()

	Listen(ctx, h.Client, h.Channel, func(payload []byte) {
		var q holderRequest[Request]
		if err := json.Unmarshal(payload, &q); err != nil {
			h.Log.WarnContext(ctx, "unreadable request of another node", "channel", h.Channel, "error", err)
			return
		}

		applying.Go(func() {
			// A request that was heard is answered also while this node ends: the asker counts on each listener.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdersTimeout)
			defer cancel()
			err := Reply(ctx, h.Client, q.ReplyTo, RemoteErrorOf(apply(ctx, q.Request)))
			if err != nil {
				h.Log.WarnContext(ctx, "answering another node failed", "channel", h.Channel, "error", err)
			}
		})
	})
}
