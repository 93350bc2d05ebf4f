package masterkey

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const keySize = 32

// A sealed secret: "mk1." ‖ id of the key ‖ "." ‖ base64url of nonce,
// ciphertext and tag of AES-256-GCM.
const (
	sealedPrefix        = "mk1."
	idLabel             = "trunkline master key id 1" // what a key's fingerprint begins with, before hashing
	associatedDataLabel = "trunkline sealed secret 1" // what the authenticated data begins with
)

// masterKey is one master key. Its bytes are kept only inside the cipher.
type masterKey struct {
	id   string
	aead cipher.AEAD
}

// keyList is the keys in their order, the newest last.
type keyList []masterKey

func (l keyList) newest() masterKey { return l[len(l)-1] }

func (l keyList) find(id string) (masterKey, bool) {
	i := slices.IndexFunc(l, func(k masterKey) bool { return k.id == id })
	if i < 0 {
		return masterKey{}, false
	}
	return l[i], true
}

// KeyID returns the id of the key of a sealed secret; "" if text is not one.
func KeyID(sealed string) string {
	rest, ok := strings.CutPrefix(sealed, sealedPrefix)
	id, _, dot := strings.Cut(rest, ".")
	if !ok || !dot {
		return ""
	}
	return id
}

func (k masterKey) encrypt(secret []byte, location []string) string {
	box := k.aead.Seal(nil, nil, secret, k.associatedData(location))
	return sealedPrefix + k.id + "." + base64.RawURLEncoding.EncodeToString(box)
}

func (k masterKey) decrypt(sealed string, location []string) ([]byte, error) {
	box, err := base64.RawURLEncoding.Strict().DecodeString(sealed[len(sealedPrefix)+len(k.id)+1:])
	if err != nil {
		return nil, fmt.Errorf("reading a sealed secret: %w", err)
	}
	secret, err := k.aead.Open(nil, nil, box, k.associatedData(location))
	if err != nil {
		return nil, errors.New("a sealed secret was altered or moved")
	}
	return secret, nil
}

// associatedData joins the parts so that no two locations give the same bytes.
func (k masterKey) associatedData(location []string) []byte {
	out := []byte(associatedDataLabel + k.id)
	for _, part := range location {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}

func newKey(raw []byte) (masterKey, error) {
	if len(raw) != keySize {
		return masterKey{}, fmt.Errorf("a master key has %d bytes, not %d", len(raw), keySize)
	}
	if slices.Max(raw) == slices.Min(raw) {
		return masterKey{}, errors.New("a master key of one repeated byte is no key")
	}

	block, err := aes.NewCipher(raw)
	if err != nil {
		return masterKey{}, fmt.Errorf("AES: %w", err)
	}

	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return masterKey{}, fmt.Errorf("AES-GCM: %w", err)
	}

	return masterKey{id: fingerprint(raw), aead: aead}, nil
}

// fingerprint identifies a key of 32 random bytes without revealing it.
func fingerprint(raw []byte) string {
	sum := sha256.Sum256(append([]byte(idLabel), raw...))
	return hex.EncodeToString(sum[:8])
}

// decodeKey reads a key in hex or any base64. Errors do not contain the text.
func decodeKey(text string) ([]byte, error) {
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) == keySize {
		return raw, nil
	}

	text = strings.TrimRight(text, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		raw, err := encoding.DecodeString(text)
		if err == nil && len(raw) == keySize {
			return raw, nil
		}
	}

	return nil, errors.New("a master key is 32 bytes in base64 or hex")
}

// parseKeys reads keys in their order; of a repeated key the last position counts.
func parseKeys(texts []string) (keyList, error) {
	var keys keyList
	for i, text := range texts {
		raw, err := decodeKey(text)
		if err != nil {
			return nil, fmt.Errorf("master key %d of %d: %w", i+1, len(texts), err)
		}

		k, err := newKey(raw)
		clear(raw)
		if err != nil {
			return nil, fmt.Errorf("master key %d of %d: %w", i+1, len(texts), err)
		}

		keys = slices.DeleteFunc(keys, func(other masterKey) bool { return other.id == k.id })
		keys = append(keys, k)
	}

	if len(keys) == 0 {
		return nil, errors.New("no master key is given")
	}

	return keys, nil
}

func splitKeys(value string) []string {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
