package aiprovider

// Mask replaces every header's value in responses. A request that sends it back keeps
// the stored value, unless it changes the origin of the address.
const Mask = "********"

// Document is a provider as in requests and responses. Fields that were never sent are
// absent from responses.
type Document struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Media      Media     `json:"media"`
	WebSocket  WebSocket `json:"websocket"`
	Extensions *bool     `json:"extensions,omitempty"`
	Fallback   Fallback  `json:"fallback,omitempty"`
}

// Media is a document's audio.
type Media struct {
	AudioFormat string `json:"audioFormat"`
	SampleRate  int    `json:"sampleRate"` // Hz
}

// WebSocket is a document's connection.
type WebSocket struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitzero"` // nil: not sent
}

// masked returns d as in a response.
func (d Document) masked() Document {
	if d.WebSocket.Headers == nil {
		return d
	}
	headers := make(map[string]string, len(d.WebSocket.Headers))
	for name := range d.WebSocket.Headers {
		headers[name] = Mask
	}
	d.WebSocket.Headers = headers
	return d
}

// String leaves out the secrets, for logs and messages.
func (d Document) String() string { return "AI provider " + d.ID + " (not shown)" }

// GoString is String for %#v.
func (d Document) GoString() string { return d.String() }
