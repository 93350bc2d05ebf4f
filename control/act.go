package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// Act does an action and returns its id once the platform has taken it. Returns fault kinds:
// NotFound for what the caller does not see, Forbidden for what it may not act on, Conflict
// for what the platform or the state does not allow, Unprocessable without an extension to
// ring, Limited, Refused with the platform's words, and Unavailable.
func (s *Service) Act(ctx context.Context, r Request) (id string, err error) {
	target := "agent:" + r.AgentID
	if r.CallID != "" {
		target = "call:" + r.CallID
	}
	if r.ProviderID != "" {
		target += " ai_provider:" + r.ProviderID
	}

	newAuditEntry := func() audit.Entry {
		return s.audit.Entry(ctx, auditAction(r), r.Account.ID, target+" "+string(r.Action))
	}
	defer func() {
		outcome := string(fault.KindOf(err))
		if err == nil {
			outcome = string(Accepted)
		}

		s.metrics.WithLabelValues(string(r.Action), outcome).Inc()
		unknownLeg := r.ServesCall && fault.KindOf(err) == fault.KindNotFound
		if err != nil && !unknownLeg {
			entry := newAuditEntry() // one of its own, also where the start was recorded: the platform has refused
			entry.Outcome = outcome
			s.audit.Report(context.WithoutCancel(ctx), entry)
		}
	}()

	a, replayed, err := s.prepare(ctx, r)
	if err != nil {
		return "", err
	}

	if replayed {
		return s.awaitFirstAnswer(ctx, a)
	}

	// Nobody acts without an entry: it is durable before the command leaves.
	if err := s.audit.Record(ctx, newAuditEntry()); err != nil {
		return "", s.refuse(ctx, a, err)
	}

	if err := s.dispatch(ctx, a); err != nil {
		return "", s.refuse(ctx, a, err)
	}

	_, err = s.change(ctx, a, Accepted, "", "", "", Sent)
	if err != nil {
		s.log.Warn("storing a taken action failed", "action_id", a.ID, "error", err) // the sweep ends it
	}

	return a.ID, nil
}

// dispatch sends an action to the node with its feed, or does it on a call of our own.
func (s *Service) dispatch(ctx context.Context, a *action) error {
	if a.Command.Feed != "" {
		return s.nodes.Send(ctx, a.Command.Feed, a.ID, s.SendOnce)
	}
	return s.SendOnce(ctx, a.ID, func(ctx context.Context, _ string, c feed.Command) error {
		return s.ownCalls.HangUp(ctx, c.CallID)
	})
}

// prepare checks a request and stores its action. replayed is true for the action of an
// earlier request with the same Idempotency-Key.
func (s *Service) prepare(ctx context.Context, r Request) (a *action, replayed bool, err error) {
	user := r.Caller.Actor()
	var wait time.Duration
	if !r.ByRule && !r.ServesCall {
		wait = s.limiter.Fail(ctx,
			identity.Limit{Subject: "control:" + user, Max: maxActionsPerWindow, Window: rateWindow})
	}
	if wait > 0 {
		return nil, false, fault.Limited(wait, "Too many actions: 60 a minute are allowed")
	}
	if err := r.checkFields(); err != nil {
		return nil, false, err
	}
	if !mayAct(r.Caller.Role, r.Action) {
		return nil, false, fault.Forbidden("The role " + string(r.Caller.Role) + " may not do this")
	}

	hash := sha256.Sum256(
		[]byte(strings.Join(
			[]string{r.Account.ID, r.AgentID, r.CallID, string(r.Action), r.QueueID, r.Reason, r.Destination,
				r.ProviderID}, "\x00")))
	requestHash := hex.EncodeToString(hash[:])

	// A repeated request gets the first one's answer, whatever the state of the agent or call has become since.
	if r.Key != "" {
		earlier, err := s.findAction(ctx, `actor = $1 AND idem_key = $2`, user, r.Key)
		if err == nil {
			return earlier, true, sameRequest(earlier, requestHash)
		}
		if fault.KindOf(err) != fault.KindNotFound {
			return nil, false, err
		}
	}

	command, err := s.build(ctx, r)
	if err != nil {
		return nil, false, err
	}

	a = &action{ID: command.ID, AccountID: command.AccountID, Actor: user, RequestHash: requestHash, Command: *command,
		State: Asked}
	created, err := s.insert(ctx, a, r.Key)
	if err != nil || created {
		// Also after an error: the row may be there.
		select {
		case s.storedSignal <- struct{}{}:
		default:
		}
		return a, false, err
	}

	// Either the key was taken in the meantime, or the target has an open action, and then nothing has the key.
	earlier, err := s.findAction(ctx, `actor = $1 AND idem_key = $2`, user, r.Key)
	if fault.KindOf(err) == fault.KindNotFound {
		return nil, false, fault.Conflict("Another action on it is on its way: wait for its end")
	}
	if err != nil {
		return nil, false, err
	}

	return earlier, true, sameRequest(earlier, requestHash)
}

// sameRequest returns fault.KindConflict if an action was asked for by another request than that of the hash.
func sameRequest(earlier *action, requestHash string) error {
	if earlier.RequestHash != requestHash {
		return fault.Conflict("The Idempotency-Key was used for another action")
	}
	return nil
}

// SendOnce sends the command of an action over this node's connection, once. It is called
// on the node that has the feed.
func (s *Service) SendOnce(ctx context.Context, id string,
	send func(ctx context.Context, feed string, c feed.Command) error) error {
	a, err := s.findAction(ctx, `id = $1`, id)
	if err != nil {
		return err
	}

	isFirst, err := s.change(ctx, a, Sent, "", "", "", Asked)
	if err != nil {
		return err
	}

	if !isFirst {
		return fault.Conflict("The action was sent already")
	}

	return send(ctx, a.Command.Feed, a.Command.Command)
}

// refuse ends an action that was not taken, and returns the error for the caller. Where
// it is unknown whether the platform took it, it stays open for confirmation.
func (s *Service) refuse(ctx context.Context, a *action, err error) error {
	f := fault.As(err)
	from := []State{Asked, Sent}
	// The platform may have taken it before the connection was lost: its event will tell. Another node may be
	// sending it just now.
	if f.Kind == fault.KindUnavailable {
		from = from[:1]
	}

	_, storeErr := s.change(ctx, a, Refused, "", f.Message, f.Kind, from...)
	if storeErr != nil {
		s.log.Warn("storing a refused action failed", "action_id", a.ID, "error", storeErr)
	}

	return err
}

// awaitFirstAnswer returns the answer to a repeated request: that of the first one.
func (s *Service) awaitFirstAnswer(ctx context.Context, a *action) (string, error) {
	// The first request may be on another node: only the database knows its answer.
	for deadline := s.now().Add(confirmTimeout); a.State == Asked || a.State == Sent; {
		if s.now().After(deadline) {
			return "", fault.Unavailable(nil, time.Second,
				"The first request with this Idempotency-Key has no answer yet")
		}

		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(watchInterval):
		}

		found, err := s.findAction(ctx, `id = $1`, a.ID)
		if err != nil {
			return "", err
		}

		a = found
	}

	if a.State == Refused && a.Kind != "" {
		return "", fault.New(a.Kind, "%s", a.Message)
	}

	return a.ID, nil
}
