package aiprovider

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

	r.sealed, err = s.keys.Seal(secret, tableName, accountID, d.ID)
	return r, err
}

// unseal returns a provider's secrets.
func (s *Service) unseal(r row) (sealedSecrets, error) {
	if r.sealed == "" {
		return sealedSecrets{}, nil
	}

	secret, err := s.keys.Unseal(r.sealed, tableName, r.accountID, r.id)
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
