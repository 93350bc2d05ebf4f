package aiprovider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/fault"
	"trunkline/internal/netguard"
)

// InvalidMessage is the message of the error for an invalid body.
const InvalidMessage = "Invalid AI provider configuration"

// maxNameLength bounds a provider's name, in Unicode characters.
const maxNameLength = 128

// parseBody parses a request's body, a JSON object decoded one level deep. id is the
// provider of the request, "" for a new one. allowPlain also accepts URLs with ws. The
// error is fault.KindInvalid and names every invalid field.
func parseBody(body map[string]json.RawMessage, id string, allowPlain bool) (Document, error) {
	p := newParser(body)
	d := Document{ID: id}
	p.checkID(id)
	name := required[string](p, "name", "a string")
	if name != nil {
		d.Name = *name
		p.checkName(d.Name)
	}

	p.requiredObject("media", func(media *parser) { d.Media = media.parseMedia() })
	p.requiredObject("websocket", func(socket *parser) { d.WebSocket = socket.parseWebSocket(allowPlain) })
	p.parseProtocol(&d)
	d.Extensions = optional[bool](p, "extensions", "a boolean")
	fallback := optional[Fallback](p, "fallback", "a string")
	if fallback != nil {
		d.Fallback = *fallback
		if d.Fallback != FallbackHangup && d.Fallback != FallbackReturn {
			p.fault("fallback", codeUnsupported, "must be %s or %s", FallbackHangup, FallbackReturn)
		}
	}

	p.refuseUnknown()
	if len(*p.faults) > 0 {
		return Document{}, fault.Invalid(InvalidMessage, *p.faults...)
	}

	return d, nil
}

// Bounds of what goes to the vendor.
const (
	maxSecretBytes  = 1 << 10  // bytes
	maxSessionBytes = 32 << 10 // bytes, compact
)

// parseProtocol parses the protocol and what it needs.
func (p *parser) parseProtocol(d *Document) {
	name := optional[string](p, "protocol", "a string")
	// The default, by whose rules the rest is checked if the name is wrong.
	protocol, _ := dialect.Find("")
	if name != nil {
		found, known := dialect.Find(*name)
		if !known || *name == "" {
			p.fault("protocol", codeUnsupported, "must be one of %s", strings.Join(dialect.Names(), ", "))
		} else {
			d.Protocol, protocol = *name, found
		}
	}

	// 0 if parseMedia has found a fault.
	if d.Media.SampleRate > 0 && !slices.Contains(protocol.Encodings, d.Media.AudioFormat) {
		p.fault("media.audioFormat", codeUnsupported, "must be %s for the protocol %s",
			strings.Join(protocol.Encodings, " or "), protocol.Name)
	}

	secret := optional[string](p, "secret", "a string")
	switch {
	case secret == nil:
	case !protocol.TakesSecret:
		p.fault("secret", codeUnsupported, "the protocol %s has no secret: send headers", protocol.Name)
	case len(*secret) > maxSecretBytes:
		p.fault("secret", codeTooLong, "must have at most %d bytes", maxSecretBytes)
	case *secret == "" || strings.ContainsFunc(*secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		p.fault("secret", codeInvalid, "must be printable ASCII characters without spaces")
	default:
		d.Secret = *secret
	}

	p.parseSession(d, protocol)
	p.parseMode(d, protocol)
	p.parseQueues(d)
}

// parseMode parses what the provider does in calls.
func (p *parser) parseMode(d *Document, protocol dialect.Protocol) {
	mode := optional[Mode](p, "mode", "a string")
	if mode == nil {
		return
	}

	d.Mode = *mode
	switch {
	case d.Mode != ModeAnswer && d.Mode != ModeListen:
		p.fault("mode", codeUnsupported, "must be %s or %s", ModeAnswer, ModeListen)
	case d.Mode == ModeListen && !protocol.Listens:
		p.fault("mode", codeUnsupported, "the protocol %s cannot listen", protocol.Name)
	}
}

// Bounds of the queues that a provider hears.
const (
	maxQueues       = 1000
	maxQueueIDBytes = 255 // bytes
)

// parseQueues parses the queues whose calls the provider hears.
func (p *parser) parseQueues(d *Document) {
	queues := optional[[]string](p, "queues", "an array of strings")
	if queues == nil {
		return
	}

	d.Queues = *queues
	if d.Mode != ModeListen && len(d.Queues) > 0 {
		p.fault("queues", codeUnsupported, "needs the mode %s", ModeListen)
	}
	if len(d.Queues) > maxQueues {
		p.fault("queues", codeTooMany, "must be at most %d", maxQueues)
	}

	for i, queue := range d.Queues[:min(len(d.Queues), maxQueues)] {
		if queue == "" || len(queue) > maxQueueIDBytes {
			p.fault(fmt.Sprintf("queues[%d]", i), codeInvalid, "must have 1 to %d bytes", maxQueueIDBytes)
		}
	}
}

// parseSession parses the object that goes to the vendor as it is.
func (p *parser) parseSession(d *Document, protocol dialect.Protocol) {
	raw := p.members["session"]
	members := optional[map[string]json.RawMessage](p, "session", "an object")
	if members == nil {
		return
	}

	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil { // it was decoded: cannot fail
		p.fault("session", codeInvalid, "must be an object")
		return
	}

	switch {
	case !protocol.TakesSession:
		p.fault("session", codeUnsupported, "the protocol %s has no session object", protocol.Name)
		return
	case compact.Len() > maxSessionBytes:
		p.fault("session", codeTooLong, "must have at most %d bytes", maxSessionBytes)
		return
	}

	if protocol.Name == dialect.Twilio {
		for _, name := range slices.Sorted(maps.Keys(*members)) {
			text := (*members)[name]
			if len(text) == 0 || text[0] != '"' {
				p.fault("session."+shorten(name), codeWrongType, "must be a string: it is a custom parameter")
			}
		}
	}

	d.Session = compact.Bytes()
}

// checkID adds a fault if the body has another id than want.
func (p *parser) checkID(want string) {
	id := optional[string](p, "id", "a string")
	if id != nil && *id != want {
		p.fault("id", codeReadOnly, "is generated by the service; omit it or send it back unchanged")
	}
}

func (p *parser) checkName(name string) {
	switch {
	case strings.TrimSpace(name) == "":
		p.fault("name", codeRequired, "must not be empty")
	case utf8.RuneCountInString(name) > maxNameLength:
		p.fault("name", codeTooLong, "must have at most %d characters", maxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		p.fault("name", codeInvalid, "must not have control characters")
	}
}

// parseMedia parses the audio format and checks that the sample rate fits it.
func (p *parser) parseMedia() Media {
	var m Media
	var format aiprotocol.Format
	known := false
	name := required[string](p, "audioFormat", "a string")
	if name != nil {
		m.AudioFormat = *name
		format, known = aiprotocol.FormatOf(*name)
		if !known {
			p.fault("audioFormat", codeUnsupported, "must be %s, %s or %s", aiprotocol.PCM16, aiprotocol.ULaw,
				aiprotocol.Opus)
		}
	}

	rate := required[float64](p, "sampleRate", "a number")
	if rate == nil || !known {
		return m
	}

	m.SampleRate = format.SampleRate
	if *rate != float64(format.SampleRate) {
		p.fault("sampleRate", codeMismatch, "must be %d for %s", format.SampleRate, format.Encoding)
	}

	return m
}

func (p *parser) parseWebSocket(allowPlain bool) WebSocket {
	var w WebSocket
	address := required[string](p, "url", "a string")
	if address != nil {
		w.URL = *address
		code, text := netguard.WebSocket.Check(w.URL, allowPlain)
		if code != "" {
			p.fault("url", code, "%s", text)
		}
	}

	headers, sent := p.object("headers")
	if sent {
		w.Headers = headers.parseHeaders()
	}

	return w
}
