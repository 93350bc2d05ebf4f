package webhook

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
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

// printHook writes a webhook as text, or its JSON as received.
func printHook(p *cli.Program, answer []byte, asJSON bool) error {
	if asJSON {
		return cli.JSONLine(p.Out, json.RawMessage(answer))
	}

	h, err := decodeHook(answer)
	if err != nil {
		return err
	}

	lines := [][2]string{{"id", h.ID}, {"account", h.AccountID}, {"url", h.URL}, {"format", h.Format}}
	for _, flag := range filterFlags(&h.Filters) {
		lines = append(lines, [2]string{flag.name, strings.Join(*flag.values, ",")})
	}

	lines = append(lines, [][2]string{
		{"status", h.Status}, {"failures", strconv.Itoa(h.Failures)}, {"last error", h.LastError},
		{"failed", formatTime(h.FailedAt)}, {"next try", formatTime(h.NextTryAt)}, {"paused", formatTime(h.PausedAt)},
		{"created", formatTime(h.CreatedAt)}, {"updated", formatTime(h.UpdatedAt)},
	}...)

	for _, line := range lines {
		if line[1] == "" {
			continue
		}

		_, err := fmt.Fprintf(p.Out, "%-12s  %s\n", line[0], cli.Printable(line[1]))
		if err != nil {
			return err
		}
	}

	return nil
}

func formatTime(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(seconds, 0).Format(time.DateTime)
}
