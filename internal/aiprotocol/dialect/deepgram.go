package dialect

import (
	"net/http"
	"sync"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/jsonscan"
)

func deepgramProtocol() Protocol {
	return Protocol{
		Name: DeepgramAgent, Encodings: []string{aiprotocol.PCM16, aiprotocol.ULaw}, BinaryAudio: true,
		RequestsWithoutOptIn: true, TakesSecret: true, TakesSession: true,
		Prepare: func(c Config, address string, header http.Header) string {
			if c.Secret != "" && header.Get("Authorization") == "" {
				header.Set("Authorization", "Token "+c.Secret)
			}
			return address
		},
		New: func(c Config) Dialect { return &deepgramDialect{config: c} },
	}
}

// deepgramDialect is Deepgram's Voice Agent.
type deepgramDialect struct {
	config Config
	out    aiprotocol.Message // what Decode has returned last

	mu                           sync.Mutex
	functionCallID, functionName string // of the last function that the model called; not of a phone call
}

// AppendAudio implements Dialect.
func (*deepgramDialect) AppendAudio(dst, frame []byte, _ aiprotocol.Track) []byte {
	return append(dst, frame...)
}

// Encode implements Dialect.
func (d *deepgramDialect) Encode(m *aiprotocol.Message, send Send) {
	switch m.Event {
	case aiprotocol.EventStart:
		d.encodeSettings(send)
	case aiprotocol.EventTransfer, aiprotocol.EventError:
		d.encodeOutput(m.Refusal, send)
	}
}

// encodeSettings sends the session object with our formats.
func (d *deepgramDialect) encodeSettings(send Send) {
	format := func(more map[string]any) map[string]any {
		encoding := "mulaw"
		if d.config.Format.Encoding == aiprotocol.PCM16 {
			encoding = "linear16"
		}
		return merge(map[string]any{"encoding": encoding, "sample_rate": d.config.Format.SampleRate}, more)
	}

	sendJSON(send, merge(objectOf(d.config.Session), map[string]any{"type": "Settings", "audio": map[string]any{
		"input": format(nil), "output": format(map[string]any{"container": "none"}),
	}}))
}

// encodeOutput sends the result of the last function.
func (d *deepgramDialect) encodeOutput(reason string, send Send) {
	d.mu.Lock()
	id, name := d.functionCallID, d.functionName
	d.functionCallID = ""
	d.mu.Unlock()
	if id != "" {
		sendJSON(send, map[string]any{"type": "FunctionCallResponse", "id": id, "name": name,
			"content": errorOutput(reason)})
	}
}

var (
	deepgramKeys         = jsonscan.KeysOf("type", "functions", "description", "code")
	deepgramFunctionKeys = jsonscan.KeysOf("id", "name", "arguments", "client_side")
)

// Decode implements Dialect.
func (d *deepgramDialect) Decode(raw []byte) (*aiprotocol.Message, error) {
	var v [4]jsonscan.Value
	if err := deepgramKeys.Scan(raw, v[:]); err != nil {
		return nil, aiprotocol.NewError(aiprotocol.ProblemNotJSON, "the message is %v", err)
	}

	kind, ok := v[0].Text()
	if !ok {
		return nil, aiprotocol.NewError(aiprotocol.ProblemNoEvent, "the message has no type, or it is no string")
	}

	switch string(kind) {
	case "UserStartedSpeaking":
		d.out = aiprotocol.Message{Event: aiprotocol.EventClear}
		return &d.out, nil
	case "FunctionCallRequest":
		return d.decodeFunctions(v[1])
	case "Error", "Warning":
		description, _ := v[2].Text()
		code, _ := v[3].Text()
		d.out = aiprotocol.Message{Event: aiprotocol.EventVendorError, Refusal: vendorErrorText(code, description)}
		return &d.out, nil
	}

	return nil, nil
}

// decodeFunctions decodes the first function that is the client's.
func (d *deepgramDialect) decodeFunctions(list jsonscan.Value) (*aiprotocol.Message, error) {
	for function := range list.Elements() {
		var v [4]jsonscan.Value
		deepgramFunctionKeys.ScanObject(function, v[:])
		if string(v[3]) != "true" {
			continue
		}

		id, _ := v[0].Text()
		name, _ := v[1].Text()
		arguments, _ := v[2].Text()
		d.mu.Lock()
		d.functionCallID, d.functionName = string(id), string(name)
		d.mu.Unlock()

		d.out = requestOf(string(name), arguments)
		return &d.out, nil
	}

	return nil, nil
}
