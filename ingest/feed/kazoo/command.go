package kazoo

import (
	"context"
	"errors"
	"net/http"
	"time"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/telephony/crossbar"
)

// agentStatuses are the statuses of Kazoo's agents API.
var agentStatuses = map[feed.Action]string{
	feed.ActionLogin: "login", feed.ActionLogout: "logout", feed.ActionBreak: "pause", feed.ActionReady: "resume",
}

// Command implements feed.Commander, by Crossbar's agents and channels.
func (s *session) Command(ctx context.Context, c feed.Command) error {
	if err := feed.CheckCommand(c, ""); err != nil {
		return err
	}
	if s.p.crossbar == nil {
		return feed.CannotDo("Kazoo", c, "the feed has no crossbar_url")
	}
	switch c.Action {
	case feed.ActionLogin, feed.ActionLogout, feed.ActionBreak, feed.ActionReady:
		if c.Reason != "" {
			return feed.CannotDo("Kazoo", c, "its agents API has no reasons of breaks")
		}
		return s.order(ctx, crossbar.AccountPath(c.AccountID, "agents", c.AgentID, "status"), map[string]string{"status": agentStatuses[c.Action]})
	case feed.ActionJoin, feed.ActionLeave:
		word := map[feed.Action]string{feed.ActionJoin: "login", feed.ActionLeave: "logout"}[c.Action]
		return s.order(ctx, crossbar.AccountPath(c.AccountID, "agents", c.AgentID, "queue_status"), map[string]string{"action": word, "queue_id": c.QueueID})
	case feed.ActionHangup:
		return s.order(ctx, crossbar.AccountPath(c.AccountID, "channels", c.CallID), map[string]string{"action": "hangup"})
	case feed.ActionTransfer:
		return s.order(ctx, crossbar.AccountPath(c.AccountID, "channels", c.CallID), map[string]string{"action": "transfer", "target": c.Destination})
	}
	return feed.CannotDo("Kazoo", c, "Crossbar has no such action for a phone's extension")
}

func (s *session) order(ctx context.Context, path string, data any) error {
	return commandError(s.p.crossbar.Do(ctx, http.MethodPost, path, data, nil))
}

// retryCommand is the time after which a command whose answer is missing may be asked again.
const retryCommand = 5 * time.Second

// commandError returns the error of a request with its kind.
func commandError(err error) error {
	var status crossbar.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status < http.StatusInternalServerError, errors.Is(err, crossbar.ErrKeyRefused):
		return fault.New(fault.KindRefused, "Kazoo refused: %v", err)
	}
	return fault.Unavailable(err, retryCommand, "Kazoo did not answer")
}
