package webhook

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
)

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
