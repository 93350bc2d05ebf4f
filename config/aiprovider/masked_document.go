package aiprovider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// Mask replaces every header's value, and the secret, in responses. A request with Mask as a value keeps
// the stored value, unless it changes the origin of the URL.
const Mask = "********"

// masked returns d with Mask in place of the secret and the headers' values.
func (d Document) masked() Document {
	if d.Secret != "" {
		d.Secret = Mask
	}
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

// restoreMasked replaces each mask by the stored value of the header, or the stored secret.
// It returns a fault for a mask without a stored value. The case of names is ignored.
func (d *Document) restoreMasked(stored sealedSecrets) []fault.Field {
	var faults []fault.Field
	if d.Secret == Mask {
		d.Secret = stored.token
		if d.Secret == "" {
			faults = append(faults, fault.Field{Field: "secret", Code: codeMasked,
				Message: "no secret is stored for this address: send it instead of " + Mask})
		}
	}

	for _, name := range slices.Sorted(maps.Keys(d.WebSocket.Headers)) {
		if d.WebSocket.Headers[name] != Mask {
			continue
		}

		value, ok := findHeader(stored.headers, name)
		if !ok {
			faults = append(faults, fault.Field{Field: "websocket.headers." + name, Code: codeMasked,
				Message: "has no value stored for this address: send the value instead of " + Mask})
			continue
		}

		d.WebSocket.Headers[name] = value
	}

	return faults
}

func findHeader(headers map[string]string, name string) (value string, ok bool) {
	for storedName, value := range headers {
		if strings.EqualFold(storedName, name) {
			return value, true
		}
	}
	return "", false
}

// restoreSecrets returns the sent document with stored values in place of masks. It does
// not use values that were stored for another origin, because they are secrets of that
// host. Without a mask it unseals nothing, so that a provider whose secret cannot be
// unsealed can be replaced.
func (s *Service) restoreSecrets(sent Document, old row) (Document, error) {
	if sent.Secret != Mask && !slices.Contains(slices.Collect(maps.Values(sent.WebSocket.Headers)), Mask) {
		return sent, nil
	}

	var stored sealedSecrets
	if sameOrigin(sent.WebSocket.URL, old.url) {
		var err error
		stored, err = s.unseal(old)
		if err != nil {
			return Document{}, err
		}
	}

	sent.WebSocket.Headers = maps.Clone(sent.WebSocket.Headers)
	faults := sent.restoreMasked(stored)
	if len(faults) > 0 {
		return Document{}, fault.Invalid(InvalidMessage, faults...)
	}

	return sent, nil
}

// maskedDocument returns the row as a masked document. It needs no master key.
func (r row) maskedDocument() (Document, error) {
	format, ok := aiprotocol.FormatOf(r.audioFormat)
	if !ok {
		return Document{}, damaged(fmt.Errorf("AI provider %s has audio format %q", r.id, r.audioFormat))
	}

	d := Document{
		ID: r.id, Name: r.name, Media: Media{format.Encoding, format.SampleRate},
		WebSocket: WebSocket{URL: r.url}, Fallback: Fallback(r.fallback), Protocol: r.protocol, Mode: Mode(r.mode),
		Session: r.session,
	}
	var err error
	d.Queues, err = decodeQueues(r.id, r.queues)
	if err != nil {
		return Document{}, err
	}

	if r.hasSecret {
		d.Secret = Mask
	}
	if r.extensions.Valid {
		d.Extensions = &r.extensions.Bool
	}
	if !r.headerNames.Valid {
		return d, nil
	}

	var names []string
	if err := json.Unmarshal([]byte(r.headerNames.String), &names); err != nil {
		return Document{}, damaged(fmt.Errorf("header names of AI provider %s: %w", r.id, err))
	}

	d.WebSocket.Headers = make(map[string]string, len(names))
	for _, name := range names {
		d.WebSocket.Headers[name] = Mask
	}

	return d, nil
}
