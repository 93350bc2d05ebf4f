package aiprovider

import "encoding/json"

// Document is a provider in requests and responses. Optional fields that were never set
// are absent.
type Document struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Media      Media           `json:"media"`
	WebSocket  WebSocket       `json:"websocket"`
	Protocol   string          `json:"protocol,omitempty"`
	Mode       Mode            `json:"mode,omitempty"`
	Queues     []string        `json:"queues,omitzero"` // whose calls it hears; nil if absent
	Secret     string          `json:"secret,omitempty"`
	Session    json.RawMessage `json:"session,omitempty"` // compact
	Extensions *bool           `json:"extensions,omitempty"`
	Fallback   Fallback        `json:"fallback,omitempty"`
}

// Media is the audio format of a provider.
type Media struct {
	AudioFormat string `json:"audioFormat"`
	SampleRate  int    `json:"sampleRate"` // Hz
}

// WebSocket has the URL of a provider and the headers of the handshake.
type WebSocket struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitzero"` // nil if absent
}

// String leaves out the secrets, for logs and messages.
func (d Document) String() string { return "AI provider " + d.ID + " (not shown)" }

// GoString is String for %#v.
func (d Document) GoString() string { return d.String() }
