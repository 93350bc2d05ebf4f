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

// Invalid is the message of every request whose body is refused.
const Invalid = "Invalid AI provider configuration"

// maxName bounds a provider's name, in Unicode characters.
const maxName = 128

// parse reads a request's body, a JSON object decoded one level deep. id is the provider
// of the request, "" for a new one. plain also accepts ws. The error is a fault.Invalid
// that names every invalid field.
func parse(body map[string]json.RawMessage, id string, plain bool) (Document, error) {
	p := newParser(body)
	d := Document{ID: id}
	p.id(id)
	if name := need[string](p, "name", "a string"); name != nil {
		d.Name = *name
		p.checkName(d.Name)
	}
	p.needed("media", func(media *parser) { d.Media = media.media() })
	p.needed("websocket", func(socket *parser) { d.WebSocket = socket.webSocket(plain) })
	d.Extensions = take[bool](p, "extensions", "a boolean")
	if fallback := take[Fallback](p, "fallback", "a string"); fallback != nil {
		d.Fallback = *fallback
		if d.Fallback != FallbackHangup && d.Fallback != FallbackReturn {
			p.fault("fallback", codeUnsupported, "must be %s or %s", FallbackHangup, FallbackReturn)
		}
	}
	p.refuseUnknown()
	if len(*p.faults) > 0 {
		return Document{}, fault.Invalid(Invalid, *p.faults...)
	}
	return d, nil
}

// id accepts an id that is sent back unchanged.
func (p *parser) id(want string) {
	if id := take[string](p, "id", "a string"); id != nil && *id != want {
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

// media checks the pair of format and rate.
func (p *parser) media() Media {
	var m Media
	var format aiprotocol.Format
	known := false
	if name := need[string](p, "audioFormat", "a string"); name != nil {
		m.AudioFormat = *name
		if format, known = aiprotocol.FormatOf(*name); !known {
			p.fault("audioFormat", codeUnsupported, "must be %s, %s or %s", aiprotocol.PCM16, aiprotocol.ULaw, aiprotocol.Opus)
		}
	}
	rate := need[float64](p, "sampleRate", "a number")
	if rate == nil || !known {
		return m
	}
	if m.SampleRate = format.SampleRate; *rate != float64(format.SampleRate) {
		p.fault("sampleRate", codeMismatch, "must be %d for %s", format.SampleRate, format.Encoding)
	}
	return m
}

func (p *parser) webSocket(plain bool) WebSocket {
	var w WebSocket
	if address := need[string](p, "url", "a string"); address != nil {
		w.URL = *address
		if code, text := netguard.WebSocket.Check(w.URL, plain); code != "" {
			p.fault("url", code, "%s", text)
		}
	}
	if headers, sent := p.object("headers"); sent {
		w.Headers = headers.headers()
	}
	return w
}
