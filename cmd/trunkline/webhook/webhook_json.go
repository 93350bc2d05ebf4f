package webhook

import (
	"encoding/json"
	"fmt"

	"trunkline/identity"
)

// config is the body of a request that creates or updates a webhook.
type config struct {
	URL     string          `json:"url"`
	Filters identity.Filter `json:"filters"`
	Format  string          `json:"format,omitempty"`
	Secret  string          `json:"secret,omitempty"`
}

// hook is a webhook as the API shows it. Times are Unix seconds, 0 for none.
type hook struct {
	config
	ID        string `json:"id"`
	AccountID string `json:"account_id"`
	Status    string `json:"status"`
	Failures  int    `json:"failures"`
	LastError string `json:"last_error"`
	FailedAt  int64  `json:"failed_at"`
	NextTryAt int64  `json:"next_try_at"`
	PausedAt  int64  `json:"paused_at"`
	CreatedAt int64  `json:"created_at"`
	UpdatedAt int64  `json:"updated_at"`
}

func decodeHook(answer []byte) (h hook, err error) {
	if err := json.Unmarshal(answer, &h); err != nil {
		return hook{}, fmt.Errorf("reading a webhook: %w", err)
	}
	return h, nil
}
