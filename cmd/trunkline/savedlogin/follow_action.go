package savedlogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/retry"
)

// actionPoll is the interval at which Act asks for the state of an action; actionWait is the
// longest time that it takes to end.
const (
	actionPoll = 200 * time.Millisecond
	actionWait = 15 * time.Second
)

// Act does an action on an agent or a call and prints its end. It returns an error unless the
// platform has confirmed the action.
func (s *Session) Act(ctx context.Context, p *cli.Program, path string, body map[string]string) error {
	_, answer, err := s.Do(ctx,
		Request{Method: http.MethodPost, Path: path, Body: body, WantStatus: http.StatusAccepted})
	if err != nil {
		return err
	}

	var action struct {
		ID      string `json:"action_id"`
		State   string `json:"state"`
		EventID string `json:"event_id"`
		Message string `json:"message"`
	}
	err = json.Unmarshal(answer, &action)
	if err != nil || action.ID == "" {
		return errors.New("the response has no action_id: is it a Trunkline server?")
	}

	ctx, cancel := context.WithTimeout(ctx, actionWait)
	defer cancel()

	for action.State == "" || action.State == "accepted" {
		if !retry.Sleep(ctx, actionPoll) {
			return fmt.Errorf("action %s has not ended yet: %w", action.ID, ctx.Err())
		}

		answer, err := s.Call(ctx, http.MethodGet, "/api/v2/actions/"+action.ID, http.StatusOK)
		if err != nil {
			return err
		}

		if err := json.Unmarshal(answer, &action); err != nil {
			return fmt.Errorf("reading action %s: %w", action.ID, err)
		}
	}

	if action.State != "confirmed" {
		return fmt.Errorf("action %s is %s: %s", action.ID, action.State, cli.Printable(action.Message))
	}

	_, err = fmt.Fprintln(p.Out, "confirmed", cli.Printable(action.EventID))
	return err
}
