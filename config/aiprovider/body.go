package aiprovider

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/netguard"
)

// InvalidMessage is the message of every request whose body is refused.
const InvalidMessage = "Invalid AI provider configuration"

// maxName bounds a provider's name, in Unicode characters.
const maxName = 128

// parseBody reads a request's body, a JSON object decoded one level deep. id is the provider
// of the request, "" for a new one. plain also accepts ws. The error is a fault.Invalid
// that names every invalid field.
func parseBody(body map[string]json.RawMessage, id string, allowPlain bool) (Document, error) {
	p := newParser(body)
	d := Document{ID: id}
	p.checkID(id)
	if name := required[string](p, "name", "a string"); name != nil {
		d.Name = *name
		p.checkName(d.Name)
	}
	p.requiredObject("media", func(media *parser) { d.Media = media.parseMedia() })
	p.requiredObject("websocket", func(socket *parser) { d.WebSocket = socket.parseWebSocket(allowPlain) })
	d.Extensions = optional[bool](p, "extensions", "a boolean")
	if fallback := optional[Fallback](p, "fallback", "a string"); fallback != nil {
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

// checkID accepts an id that is sent back unchanged.
func (p *parser) checkID(want string) {
	if id := optional[string](p, "id", "a string"); id != nil && *id != want {
		p.fault("id", codeReadOnly, "is made by the service; leave it out or send it back as it is")
	}
}

func (p *parser) checkName(name string) {
	switch {
	case strings.TrimSpace(name) == "":
		p.fault("name", codeRequired, "must not be empty")
	case utf8.RuneCountInString(name) > maxName:
		p.fault("name", codeTooLong, "must have at most %d characters", maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		p.fault("name", codeInvalid, "must not have control characters")
	}
}

// parseMedia checks the pair of format and rate.
func (p *parser) parseMedia() Media {
	var m Media
	var format aiprotocol.Format
	known := false
	if name := required[string](p, "audioFormat", "a string"); name != nil {
		m.AudioFormat = *name
		if format, known = aiprotocol.FormatOf(*name); !known {
			p.fault("audioFormat", codeUnsupported, "must be %s, %s or %s", aiprotocol.PCM16, aiprotocol.ULaw, aiprotocol.Opus)
		}
	}
	rate := required[float64](p, "sampleRate", "a number")
	if rate == nil || !known {
		return m
	}
	if m.SampleRate = format.SampleRate; *rate != float64(format.SampleRate) {
		p.fault("sampleRate", codeMismatch, "must be %d for %s", format.SampleRate, format.Encoding)
	}
	return m
}

func (p *parser) parseWebSocket(allowPlain bool) WebSocket {
	var w WebSocket
	if address := required[string](p, "url", "a string"); address != nil {
		w.URL = *address
		if code, text := netguard.WebSocket.Check(w.URL, allowPlain); code != "" {
			p.fault("url", code, "%s", text)
		}
	}
	if headers, sent := p.object("headers"); sent {
		w.Headers = headers.parseHeaders()
	}
	return w
}
