package dialect

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/jsonscan"
)

func openAIProtocol() Protocol {
	return Protocol{
		Name: OpenAIRealtime, Encodings: []string{aiprotocol.PCM16, aiprotocol.ULaw}, RequestsWithoutOptIn: true,
		TakesSecret: true, TakesSession: true,
		Prepare: prepareOpenAI,
		New:     func(c Config) Dialect { return &openAIDialect{config: c} },
	}
}

// prepareOpenAI adds the key, and the model of the session object, which the vendor takes in the address only.
func prepareOpenAI(c Config, address string, header http.Header) string {
	if c.Secret != "" && header.Get("Authorization") == "" {
		header.Set("Authorization", "Bearer "+c.Secret)
	}

	model, ok := objectOf(c.Session)["model"].(string)
	u, err := url.Parse(address)
	if !ok || err != nil {
		return address
	}

	query := u.Query()
	if query.Get("model") != "" {
		return address
	}

	query.Set("model", model)
	u.RawQuery = query.Encode()
	return u.String()
}

// openAIDialect is OpenAI's Realtime API over WebSocket.
type openAIDialect struct {
	config Config
	audio  []byte             // decoded audio
	out    aiprotocol.Message // what Decode has returned last

	mu             sync.Mutex
	item           string        // that the last audio belongs to
	started        time.Duration // position in the received audio at which it began
	received       time.Duration // audio of the connection
	dropped        time.Duration // of it, by clears
	truncatedItem  string        // an item that was truncated: the rest of it is not played
	functionCallID string        // of the last function that the model called; not of a phone call
}

// AppendAudio implements Dialect.
func (o *openAIDialect) AppendAudio(dst, frame []byte, _ aiprotocol.Track) []byte {
	dst = append(dst, `{"type":"input_audio_buffer.append","audio":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, frame)
	return append(dst, `"}`...)
}

// Encode implements Dialect.
func (o *openAIDialect) Encode(m *aiprotocol.Message, send Send) {
	switch m.Event {
	case aiprotocol.EventStart:
		o.encodeStart(send)
	case aiprotocol.EventCleared:
		o.encodeTruncate(m.Cleared, send)
	case aiprotocol.EventTransfer, aiprotocol.EventError:
		o.encodeOutput(m.Refusal, send)
	}
}

// encodeStart sends the session object with our formats, and asks for the greeting, a member of the object that
// the vendor does not have.
func (o *openAIDialect) encodeStart(send Send) {
	format := map[string]any{"type": "audio/pcmu"}
	if o.config.Format.Encoding == aiprotocol.PCM16 {
		format = map[string]any{"type": "audio/pcm", "rate": o.config.Format.SampleRate}
	}

	formats := map[string]any{"type": "realtime", "audio": map[string]any{
		"input": map[string]any{"format": format}, "output": map[string]any{"format": format},
	}}
	session := merge(objectOf(o.config.Session), formats)
	greeting, ok := session["greeting"].(string)
	delete(session, "greeting")
	// The vendor takes it in the address only, where prepareOpenAI has put it.
	delete(session, "model")

	sendJSON(send, map[string]any{"type": "session.update", "session": session})
	if ok && greeting != "" {
		sendJSON(send, map[string]any{"type": "response.create",
			"response": map[string]any{"instructions": "Say to the caller: " + greeting}})
	}
}

// encodeTruncate tells the model how much of its last item was heard.
func (o *openAIDialect) encodeTruncate(c aiprotocol.Cleared, send Send) {
	o.mu.Lock()
	item := o.item
	// Played does not count what earlier clears dropped, but started is a position in all that was received.
	heard := c.Played + o.dropped - o.started
	o.dropped += c.Dropped

	// Without a drop the item was heard so far, and what follows of it is to be played.
	if c.Dropped > 0 {
		o.truncatedItem = item
	}
	o.mu.Unlock()

	if c.Dropped == 0 || item == "" {
		return
	}

	sendJSON(send, map[string]any{
		"type": "conversation.item.truncate", "item_id": item, "content_index": 0,
		"audio_end_ms": max(heard, 0).Milliseconds(),
	})
}

// encodeOutput sends the result of the last function, and has the model go on.
func (o *openAIDialect) encodeOutput(reason string, send Send) {
	o.mu.Lock()
	id := o.functionCallID
	o.functionCallID = ""
	o.mu.Unlock()

	if id == "" {
		return
	}

	sendJSON(send, map[string]any{"type": "conversation.item.create", "item": map[string]any{
		"type": "function_call_output", "call_id": id, "output": errorOutput(reason),
	}})
	sendJSON(send, map[string]any{"type": "response.create"})
}

var (
	openAIKeys     = jsonscan.KeysOf("type", "delta", "item_id", "item", "error")
	openAIItemKeys = jsonscan.KeysOf("type", "status", "call_id", "name", "arguments", "message", "code")
)

// Decode implements Dialect.
func (o *openAIDialect) Decode(raw []byte) (*aiprotocol.Message, error) {
	var v [5]jsonscan.Value
	if err := openAIKeys.Scan(raw, v[:]); err != nil {
		return nil, aiprotocol.NewError(aiprotocol.ProblemNotJSON, "the message is %v", err)
	}

	kind, ok := v[0].Text()
	if !ok {
		return nil, aiprotocol.NewError(aiprotocol.ProblemNoEvent, "the message has no type, or it is no string")
	}

	var inner [7]jsonscan.Value
	switch string(kind) {
	case "response.output_audio.delta":
		return o.decodeAudio(v[1], v[2])
	case "input_audio_buffer.speech_started":
		o.out = aiprotocol.Message{Event: aiprotocol.EventClear}
		return &o.out, nil
	case "response.output_item.done":
		openAIItemKeys.ScanObject(v[3], inner[:])
		return o.decodeItem(&inner)
	case "error":
		openAIItemKeys.ScanObject(v[4], inner[:])
		message, _ := inner[5].Text()
		code, _ := inner[6].Text()
		o.out = aiprotocol.Message{Event: aiprotocol.EventVendorError, Refusal: vendorErrorText(code, message)}
		return &o.out, nil
	}

	return nil, nil
}

// decodeAudio decodes a piece of the item's audio.
func (o *openAIDialect) decodeAudio(delta, itemID jsonscan.Value) (*aiprotocol.Message, error) {
	payload, isText := delta.Text()
	item, _ := itemID.Text()
	if !isText {
		return nil, aiprotocol.NewError(aiprotocol.ProblemField, "delta is missing, or no string")
	}
	if cap(o.audio) > maxIdleAudioBytes {
		o.audio = nil
	}

	audio, err := base64.StdEncoding.AppendDecode(o.audio[:0], payload)
	// Also after an error: the memory may have grown.
	o.audio = audio[:0]
	if err != nil {
		return nil, aiprotocol.NewError(aiprotocol.ProblemBase64, "delta is not base64")
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	if o.truncatedItem != "" && string(item) == o.truncatedItem {
		return nil, nil
	}
	if string(item) != o.item {
		o.item, o.started, o.truncatedItem = string(item), o.received, ""
	}

	o.received += duration(o.config.Format, len(audio))
	o.out = aiprotocol.Message{Event: aiprotocol.EventMedia, Audio: audio}
	return &o.out, nil
}

// maxIdleAudioBytes is the largest buffer in bytes that is kept between messages.
const maxIdleAudioBytes = 64 << 10

// duration returns how long so many bytes of audio last; opus is none of the formats.
func duration(f aiprotocol.Format, bytes int) time.Duration {
	return time.Duration(bytes) * aiprotocol.FrameDuration / time.Duration(f.FrameBytes())
}

// decodeItem decodes a function that the model has called completely.
func (o *openAIDialect) decodeItem(v *[7]jsonscan.Value) (*aiprotocol.Message, error) {
	if !v[0].Is("function_call") || !v[1].Is("completed") {
		return nil, nil
	}

	id, _ := v[2].Text()
	name, _ := v[3].Text()
	arguments, _ := v[4].Text()
	o.mu.Lock()
	o.functionCallID = string(id)
	o.mu.Unlock()

	o.out = requestOf(string(name), arguments)
	return &o.out, nil
}

// vendorErrorText returns what a vendor says about an error.
func vendorErrorText(code, message []byte) string {
	text := string(code)
	if len(message) > 0 && text != "" {
		text += ": "
	}
	text += string(message)
	const maxProblem = 300 // bytes
	return text[:min(len(text), maxProblem)]
}
