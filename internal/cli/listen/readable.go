package listen

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/internal/cli"
)

// oneLine returns a message without line breaks: data keeps its source's bytes,
// and its source may have written it over many lines.
func oneLine(message []byte) []byte {
	if !bytes.ContainsAny(message, "\r\n") {
		return message
	}
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return message // the client has found it to be JSON
	}
	return line.Bytes()
}

// readable returns a message as a line for people: the time, the name of what
// happened or else the type, the account, and the facts. A message without facts
// has its queue alone.
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
		return oneLine(message) // not a message of Trunkline: as it is
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

// duration returns milliseconds as 1m5s; "" where they are not known.
func duration(ms event.Millis) string {
	if !ms.Known {
		return ""
	}
	return (time.Duration(ms.Value) * time.Millisecond).Round(100 * time.Millisecond).String()
}
