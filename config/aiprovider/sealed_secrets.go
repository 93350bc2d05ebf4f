package aiprovider

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

const tableName = "ai_providers" // authenticated with every sealed secret

// sealedSecrets are what is sealed of a provider: one JSON object with the headers, and the token
// under a name that no header has.
type sealedSecrets struct {
	headers map[string]string // nil: none
	token   string            // "": none
}

const tokenName = ""

// seal returns the row of a document, with its secrets sealed. A document without any
// needs no master key.
func (s *Service) seal(accountID string, d Document) (row, error) {
	r := row{
		id: d.ID, accountID: accountID, name: d.Name, audioFormat: d.Media.AudioFormat, url: d.WebSocket.URL,
		fallback: string(d.Fallback), protocol: d.Protocol, mode: string(d.Mode), hasSecret: d.Secret != "",
		session: d.Session,
	}
	queues, err := encodeQueues(d.Queues)
	if err != nil {
		return row{}, err
	}

	r.queues = queues
	if d.Extensions != nil {
		r.extensions = sql.NullBool{Bool: *d.Extensions, Valid: true}
	}

	// The names are stored beside the sealed values, so that a list needs no master key (maskedDocument).
	if d.WebSocket.Headers != nil {
		names, err := json.Marshal(slices.AppendSeq([]string{}, maps.Keys(d.WebSocket.Headers))) // [], never null
		if err != nil {
			return row{}, fmt.Errorf("encoding the headers' names: %w", err)
		}
		r.headerNames = sql.NullString{String: string(names), Valid: true}
	}

	sealed := maps.Clone(d.WebSocket.Headers)
	if d.Secret != "" {
		if sealed == nil {
			sealed = make(map[string]string, 1)
		}
		sealed[tokenName] = d.Secret
	}

	if len(sealed) == 0 {
		return r, nil
	}

	secret, err := json.Marshal(sealed)
	if err != nil {
		return row{}, fmt.Errorf("encoding the secrets: %w", err)
	}
	defer clear(secret)

	r.sealedHeaders, err = s.keys.Seal(secret, tableName, accountID, d.ID)
	return r, err
}

// unseal returns a provider's secrets.
func (s *Service) unseal(r row) (sealedSecrets, error) {
	if r.sealedHeaders == "" {
		return sealedSecrets{}, nil
	}

	secret, err := s.keys.Unseal(r.sealedHeaders, tableName, r.accountID, r.id)
	if err != nil {
		return sealedSecrets{}, fmt.Errorf("secrets of AI provider %s: %w", r.id, err)
	}
	defer clear(secret)

	var headers map[string]string
	if json.Unmarshal(secret, &headers) != nil { // the error could contain a part of a secret
		return sealedSecrets{}, damaged(fmt.Errorf("secrets of AI provider %s are no object", r.id))
	}

	token := headers[tokenName]
	delete(headers, tokenName)
	return sealedSecrets{headers, token}, nil
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
