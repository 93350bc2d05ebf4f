package listen

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/event"
)

// compactJSON returns a message without line breaks, which the source's bytes in data may contain.
func compactJSON(message []byte) []byte {
	if !bytes.ContainsAny(message, "\r\n") {
		return message
	}
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return message // the client has parsed it as JSON
	}
	return line.Bytes()
}

// textLine returns a message as one line of text: time, fact name (or type, if it has none),
// account and facts. A message without facts shows only its queue.
func textLine(message []byte) []byte {
	var m struct {
		Type      string `json:"type"`
		AccountID string `json:"account_id"`
		Timestamp int64  `json:"timestamp"`
		Metadata  struct {
			QueueID string      `json:"queue_id"`
			Facts   event.Facts `json:"facts"`
		} `json:"metadata"`
	}
	if json.Unmarshal(message, &m) != nil {
		return compactJSON(message) // not a Trunkline message: unchanged
	}

	f := &m.Metadata.Facts
	name := string(f.Name)
	if name == "" || f.Name == event.NameOther {
		name = m.Type
	}

	queue := f.QueueID
	if queue == "" {
		queue = m.Metadata.QueueID
	}

	previous := string(f.PreviousState)
	if f.PreviousState == f.State {
		previous = ""
	}

	words := []string{time.Unix(m.Timestamp, 0).Format(time.TimeOnly), name, m.AccountID}
	for _, field := range [...]struct{ name, text string }{
		{"agent", f.AgentID}, {"agent_name", f.AgentName}, {"queue", queue}, {"call", f.CallID},
		{"origination_call", f.OriginationCallID},
		{"caller", f.Caller}, {"callee", f.Callee}, {"state", string(f.State)}, {"reason", f.Reason},
		{"before", previous}, {"wait", formatDuration(f.WaitMS)}, {"talk", formatDuration(f.TalkMS)},
	} {
		if field.text != "" {
			words = append(words, field.name+"="+field.text)
		}
	}

	return []byte(cli.Printable(strings.Join(words, "  ")))
}

// formatDuration formats milliseconds as 1m5s; "" if unknown.
func formatDuration(ms event.Millis) string {
	if !ms.Known {
		return ""
	}
	return (time.Duration(ms.Value) * time.Millisecond).Round(100 * time.Millisecond).String()
}
