package listen

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

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

// summaryKeys are the keys of data most useful to a reader, in the order they
// are shown; a dot leads into an object. They are those of the formats we know.
var summaryKeys = []string{
	"Event-Name", "CC-Action", "CC-Agent", "CC-Agent-Status", "CC-Agent-State", "CC-Member-CID-Number",
	"event_name", "agent_id", "Agent-ID", "Agent-State", "Reason", "Change", "event", "state", "status", "reason",
	"data.agent_id", "data.to_agent_id", "data.reason", // of generic events
	"call_id", "Call-ID", "CDR.Event", "CDR.Call-ID", "customer_info.customer_callerid_number",
}

// readable returns a message as a line for people: when, what, whose, where,
// and what data tells.
func readable(message []byte) []byte {
	var m struct {
		ID        string         `json:"id"`
		Type      string         `json:"type"`
		AccountID string         `json:"account_id"`
		Timestamp int64          `json:"timestamp"`
		Data      map[string]any `json:"data"`
		Metadata  struct {
			QueueID string `json:"queue_id"`
		} `json:"metadata"`
	}
	if json.Unmarshal(message, &m) != nil {
		return oneLine(message) // not of our making: as it is
	}
	words := []string{time.Unix(m.Timestamp, 0).Format(time.TimeOnly), m.Type, m.AccountID}
	if m.Metadata.QueueID != "" {
		words = append(words, "queue="+m.Metadata.QueueID)
	}
	for _, path := range summaryKeys {
		if text := textAt(m.Data, path); text != "" {
			words = append(words, path[strings.LastIndexByte(path, '.')+1:]+"="+text)
		}
	}
	return []byte(cli.Printable(strings.Join(words, "  ")))
}

// textAt returns the text that path leads to, "" when there is none.
func textAt(data map[string]any, path string) string {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		inner, _ := data[name].(map[string]any)
		return textAt(inner, rest)
	}
	text, _ := data[name].(string)
	return text
}
