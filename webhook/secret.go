package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"trunkline/internal/masterkey"
)

// secretPrefix begins a signing secret in its text form (Standard Webhooks 1.0,
// "Signature scheme"); base64 of the key follows.
const secretPrefix = "whsec_"

// Lengths of a key, in bytes.
const (
	newKeyBytes = 32
	minKeyBytes = 24
	maxKeyBytes = 64
)

// newKey returns a random key.
func newKey() []byte {
	key := make([]byte, newKeyBytes)
	rand.Read(key) // never fails
	return key
}

// formatSecret returns the text form of a key.
func formatSecret(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// parseSecret parses the text form of a key. Its error never contains the text.
func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minKeyBytes || len(key) > maxKeyBytes {
		return nil, fmt.Errorf("must be %s and %d to %d bytes in base64", secretPrefix, minKeyBytes, maxKeyBytes)
	}
	return key, nil
}

// openKey returns the signing key of a stored webhook.
func openKey(keys *masterkey.Keyring, r *webhookRow) ([]byte, error) {
	return keys.Unseal(r.sealedKey, webhooksTable, r.AccountID, r.ID)
}

// signature returns the header webhook-signature of a request. The timestamp is in
// Unix seconds.
func signature(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
