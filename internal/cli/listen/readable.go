package listen

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/internal/cli"
)

// oneLine returns a message without line breaks, which the source's bytes in data may contain.
func oneLine(message []byte) []byte {
	if !bytes.ContainsAny(message, "\r\n") {
		return message
	}
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return message // the client has parsed it as JSON
	}
	return line.Bytes()
}

// readable returns a message as one line of text: time, fact name or else type, account, and
// facts. A message without facts shows only its queue.
func readable(message []byte) []byte {
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
		return oneLine(message) // not a Trunkline message: unchanged
	}
	f := &m.Metadata.Facts
	what := string(f.Name)
	if what == "" || f.Name == event.NameOther {
		what = m.Type
	}
	queue := f.QueueID
	if queue == "" {
		queue = m.Metadata.QueueID
	}
	before := string(f.PreviousState)
	if f.PreviousState == f.State {
		before = ""
	}
	words := []string{time.Unix(m.Timestamp, 0).Format(time.TimeOnly), what, m.AccountID}
	for _, field := range [...]struct{ name, text string }{
		{"agent", f.AgentID}, {"agent_name", f.AgentName}, {"queue", queue}, {"call", f.CallID}, {"origination_call", f.OriginationCallID},
		{"caller", f.Caller}, {"callee", f.Callee}, {"state", string(f.State)}, {"reason", f.Reason},
		{"before", before}, {"wait", duration(f.WaitMS)}, {"talk", duration(f.TalkMS)},
	} {
		if field.text != "" {
			words = append(words, field.name+"="+field.text)
		}
	}
	return []byte(cli.Printable(strings.Join(words, "  ")))
}

// duration formats milliseconds as 1m5s; "" if unknown.
func duration(ms event.Millis) string {
	if !ms.Known {
		return ""
	}
	return (time.Duration(ms.Value) * time.Millisecond).Round(100 * time.Millisecond).String()
}
