package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
)

// Nodes sends an action to the node that has its feed.
type Nodes interface {
	// Send has take called on a node that is connected to the feed's platform, and returns its
	// error. Returns fault.KindUnavailable if no node is connected, or if the node does not
	// answer.
	Send(ctx context.Context, feedName, actionID string, take SendOnce) error
}

// SendOnce sends an action's command by send, unless it was sent before. Service.SendOnce is
// one.
type SendOnce func(ctx context.Context, actionID string, send func(context.Context, string, feed.Command) error) error

// Feeds has the connections of this node; *feed.Service implements it.
type Feeds interface {
	// Connected reports whether this node is connected to the feed's platform. It does no I/O.
	Connected(feedName string) bool
	// Command sends a command over the feed's connection and returns when the platform has taken it.
	// Returns fault.KindUnavailable if this node has no connection or the platform does not answer,
	// fault.KindConflict for what the platform cannot do, and fault.KindRefused with the platform's
	// words. It does not check the caller's rights: Service.Act did.
	Command(ctx context.Context, feedName string, c feed.Command) error
}

// Statuses tells which nodes are connected; *feed.Store implements it.
type Statuses interface {
	// List returns the last status of every feed on every node, also of nodes that are not connected.
	List(ctx context.Context) ([]feed.Status, error)
}

// sendTimeout is the time for which an action waits for the platform's answer.
const sendTimeout = 12 * time.Second

// RedisNodes sends actions between nodes over Redis.
type RedisNodes struct {
	Client   redis.UniversalClient
	Prefix   string   // of the channels
	Node     string   // of this process
	Feeds    Feeds    // nil: this process has none
	Statuses Statuses // nil: no process has any
	Log      *slog.Logger
}

type sendOrder struct {
	ActionID string `json:"action_id"`
	ReplyTo  string `json:"reply_to"`
}

func (n *RedisNodes) channel(node string) string { return n.Prefix + "control:orders:" + node }

// Send implements Nodes.
func (n *RedisNodes) Send(ctx context.Context, feedName, actionID string, take SendOnce) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()

	if n.Feeds != nil && n.Feeds.Connected(feedName) {
		return take(ctx, actionID, n.Feeds.Command)
	}

	notConnected := fault.Unavailable(nil, 5*time.Second, "The feed "+feedName+" is not connected to its platform")
	if n.Statuses == nil {
		return notConnected
	}

	statuses, err := n.Statuses.List(ctx)
	if err != nil {
		return err
	}

	// A feed whose spool is full reads no events, and still takes commands.
	i := slices.IndexFunc(statuses, func(s feed.Status) bool {
		return s.Name == feedName && s.Node != n.Node &&
			(s.State == feed.StateConnected || s.State == feed.StateSpoolFull)
	})
	if i < 0 {
		return notConnected
	}

	return n.ask(ctx, statuses[i].Node, actionID)
}

// ask sends an action to another node and returns its answer.
func (n *RedisNodes) ask(ctx context.Context, node, actionID string) error {
	noAnswer := func(err error) error {
		return fault.Unavailable(err, 5*time.Second,
			"The node with the feed does not answer: the platform may have taken the action")
	}

	// The subscription comes before the question, or a quick answer is lost.
	asking, err := redisclient.NewNodeQuestion(ctx, n.Client, n.Prefix+"control:answers:")
	if err != nil {
		return fault.Unavailable(err, 5*time.Second, "Redis is away: the action was not sent")
	}
	defer asking.Close()

	listeners, err := asking.Publish(ctx, n.channel(node), sendOrder{actionID, asking.ReplyTo})
	if err != nil {
		return noAnswer(err)
	}

	if listeners == 0 {
		return fault.Unavailable(nil, 5*time.Second, "The node with the feed is gone: the action was not sent")
	}

	var outcome redisclient.RemoteError
	err = asking.Next(ctx, &outcome)
	if err != nil {
		return noAnswer(err)
	}

	return outcome.Err()
}

// Answer does the actions that other nodes send, each in a goroutine, until ctx ends.
func (n *RedisNodes) Answer(ctx context.Context, take SendOnce) error {
	if n.Feeds == nil {
		<-ctx.Done()
		return nil
	}

	redisclient.Listen(ctx, n.Client, n.channel(n.Node), func(payload []byte) {
		var o sendOrder
		if err := json.Unmarshal(payload, &o); err != nil {
			n.Log.Warn("unreadable order of another node", "error", err)
			return
		}
		// A platform may take seconds: the next order does not wait for it.
		go n.sendAndReply(ctx, o, take)
	})

	return nil
}

func (n *RedisNodes) sendAndReply(ctx context.Context, o sendOrder, take SendOnce) {
	// An order that was taken is answered also while this node ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()

	answer := redisclient.RemoteErrorOf(take(ctx, o.ActionID, n.Feeds.Command))
	err := redisclient.Reply(ctx, n.Client, o.ReplyTo, answer)
	if err != nil {
		n.Log.Warn("answering an action failed", "action_id", o.ActionID, "error", err)
	}
}
