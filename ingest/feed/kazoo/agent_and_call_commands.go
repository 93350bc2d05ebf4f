package kazoo

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
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
	if err := feed.CheckCommand(c); err != nil {
		return err
	}
	if s.platform.crossbar == nil {
		return feed.CannotDo("Kazoo", c, "the feed has no crossbar_url")
	}

	account, err := s.platform.kazooAccountID(c)
	if err != nil {
		return err
	}

	switch c.Action {
	case feed.ActionLogin, feed.ActionLogout, feed.ActionBreak, feed.ActionReady:
		if c.Reason != "" {
			return feed.CannotDo("Kazoo", c, "its agents API has no reasons of breaks")
		}
		return s.order(ctx, crossbar.AccountPath(account, "agents", c.AgentID, "status"),
			map[string]string{"status": agentStatuses[c.Action]})
	case feed.ActionJoin, feed.ActionLeave:
		word := map[feed.Action]string{feed.ActionJoin: "login", feed.ActionLeave: "logout"}[c.Action]
		return s.order(ctx, crossbar.AccountPath(account, "agents", c.AgentID, "queue_status"),
			map[string]string{"action": word, "queue_id": c.QueueID})
	case feed.ActionHangup:
		return s.order(ctx, crossbar.AccountPath(account, "channels", c.CallID), map[string]string{"action": "hangup"})
	case feed.ActionTransfer:
		return s.order(ctx, crossbar.AccountPath(account, "channels", c.CallID),
			map[string]string{"action": "transfer", "target": c.Destination})
	}

	return feed.CannotDo("Kazoo", c, "Crossbar has no such action for a phone's extension")
}

// kazooAccountID returns Kazoo's id of a command's account, which is ours or that of the account
// that ours stands for. Returns fault.KindConflict if several do.
func (p *platform) kazooAccountID(c feed.Command) (string, error) {
	p.mu.Lock()
	// A copy: resolveAccount takes the lock itself.
	realms := maps.Clone(p.realms)
	p.mu.Unlock()

	var ids []string
	for id, realm := range realms {
		account, _ := p.resolveAccount(id, realm)
		if account == c.AccountID {
			ids = append(ids, id)
		}
	}

	switch {
	case len(ids) == 0, slices.Contains(ids, c.AccountID):
		return c.AccountID, nil
	case len(ids) > 1:
		return "", feed.CannotDo("Kazoo", c, "several of its accounts stand for this one")
	}

	return ids[0], nil
}

// order posts data to a path of Crossbar.
func (s *session) order(ctx context.Context, path string, data any) error {
	return commandError(s.platform.crossbar.Do(ctx, http.MethodPost, path, data, nil))
}

// retryAfterSilence is the time after which a command whose answer is missing may be asked again.
const retryAfterSilence = 5 * time.Second

// commandError returns the error of a request with its kind.
func commandError(err error) error {
	var status crossbar.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status < http.StatusInternalServerError, errors.Is(err, crossbar.ErrKeyRefused):
		words := crossbar.Words(err)
		if words == "" {
			words = err.Error()
		}
		return fault.New(fault.KindRefused, "Kazoo refused: %s", words)
	}

	return fault.Unavailable(err, retryAfterSilence, "Kazoo did not answer")
}
