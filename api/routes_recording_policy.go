package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/config/callrecording"
	"trunkline/identity"
	"trunkline/recording"
)

// RecordingPolicies stores which calls of accounts are recorded.
type RecordingPolicies interface {
	// Find returns the policy that holds for an account.
	Find(ctx context.Context, accountID string) (callrecording.FoundPolicy, error)
	// Update sets an account's own policy. ifMatch is the request's If-Match header, "" for none:
	// fault.KindPrecondition if the policy that holds now does not match it. Returns
	// fault.KindInvalid with the invalid fields.
	Update(ctx context.Context, accountID string, policy callrecording.Policy,
		ifMatch string) (callrecording.FoundPolicy, error)
}

const recordingPolicyPath = "/api/v2/config/call_recording"

type recordingPolicyRoutes struct {
	policies RecordingPolicies
	recorder *recording.Recorder
}

func (r recordingPolicyRoutes) handleGet(c echo.Context, account identity.Account) error {
	found, err := r.policies.Find(c.Request().Context(), account.ID)
	return respondPolicy(c, account, found, err)
}

func (r recordingPolicyRoutes) handlePut(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	policy := callrecording.Policy{
		Mode: callrecording.Mode(body.String("mode", required)), OnlyQueues: body.Strings("queues", optional),
		Announce: body.Bool("announce", optional), Announcement: body.String("announcement", optional),
		RetentionDays: body.Int("retention_days", optional),
	}

	for _, queue := range body.Objects("queue_retention", optional) {
		policy.QueueDays = append(policy.QueueDays, callrecording.QueueRetention{
			QueueID: queue.String("queue_id", required), RetentionDays: queue.Int("retention_days", required),
		})
	}

	if err := body.Err(invalidBody); err != nil {
		return err
	}

	ctx := c.Request().Context()
	if policy.Announcement != "" {
		if err := r.recorder.CheckAnnouncement(ctx, account.ID, policy.Announcement); err != nil {
			return err
		}
	}

	found, err := r.policies.Update(ctx, account.ID, policy, c.Request().Header.Get("If-Match"))
	if err == nil && policy.Announcement != "" {
		err = r.recorder.HoldAnnouncement(ctx, account.ID, policy.Announcement)
	}

	return respondPolicy(c, account, found, err)
}

// respondPolicy responds with a policy, {} where there is none, and the account above that it is
// inherited from.
func respondPolicy(c echo.Context, account identity.Account, found callrecording.FoundPolicy, err error) error {
	body := struct {
		Success       bool   `json:"success"`
		Config        any    `json:"config"`
		InheritedFrom string `json:"inherited_from,omitempty"`
	}{Success: true, Config: struct{}{}}

	if found.Policy != nil {
		body.Config = found.Policy
		if found.PolicyAccount != account.ID {
			body.InheritedFrom = found.PolicyAccount
		}
	}

	return respondTagged(c, http.StatusOK, found.ETag, body, err)
}
