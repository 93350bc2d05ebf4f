package encryption

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"trunkline/internal/fault"
)

// keySalt is one version of the key and salt, as in the request or generated.
type keySalt struct{ key, salt string }

// accountConfig is an account's configuration.
type accountConfig struct {
	accountID string
	exists    bool   // false if the account was never configured
	enabled   bool   // new recordings are sealed
	algorithm string // "": not sent yet, and never enabled
	revision  int64  // counts the changes: two at once are not both stored
	// versions[v-1] is version v of key and salt, the last one is current. It is empty until the
	// configuration is first enabled.
	versions []keySalt
}

func (s *accountConfig) version() int64 { return int64(len(s.versions)) }

// auditTarget returns the version as an audit target; 0 is before the first.
func (s *accountConfig) auditTarget() string {
	return "key_version:" + strconv.FormatInt(s.version(), 10)
}

func (s *accountConfig) currentKey() (keySalt, bool) {
	if len(s.versions) == 0 {
		return keySalt{}, false
	}
	return s.versions[len(s.versions)-1], true
}

// currentKeyID returns KeyID, "" if there is no key yet.
func (s *accountConfig) currentKeyID() string {
	if len(s.versions) == 0 {
		return ""
	}
	return KeyID(s.accountID)
}

// KeyID returns the id of the account's key as the specification forms it: the same for all versions, and
// not unique among accounts that begin alike.
func KeyID(accountID string) string {
	prefix := []rune(accountID)
	return "key_auto_" + string(prefix[:min(len(prefix), 8)])
}

// apply returns the next state, by the table of transitions in docs/api.md, Recording
// encryption. It does not modify s.
func (s *accountConfig) apply(c Change) (*accountConfig, error) {
	faults := s.readOnlyFaults(c)
	if len(faults) > 0 {
		return nil, fault.Invalid(MessageUpdateFailed, faults...)
	}

	next := *s
	next.exists, next.enabled = true, c.Enabled
	next.revision++

	if c.Algorithm != nil {
		next.algorithm = *c.Algorithm
	}
	if !c.Enabled {
		return &next, nil // ignores key and salt of the request
	}
	if next.algorithm == "" {
		next.algorithm = AES256GCM
	}

	current, stored := s.currentKey()
	wanted := current
	if c.Key != nil {
		wanted.key = *c.Key
	}
	if c.Salt != nil {
		wanted.salt = *c.Salt
	}
	if stored && wanted == current {
		return &next, nil
	}

	if err := wanted.generateMissing(); err != nil {
		return nil, err
	}

	// A copy: next must not share the array with s.
	next.versions = slices.Concat(s.versions, []keySalt{wanted})
	return &next, nil
}

// generateMissing generates the key and the salt if they are neither in the request nor
// stored.
func (k *keySalt) generateMissing() error {
	var secret [32]byte
	defer clear(secret[:])

	if k.key == "" {
		_, err := rand.Read(secret[:])
		if err != nil {
			return fmt.Errorf("generating a key: %w", err)
		}
		k.key = hex.EncodeToString(secret[:])
	}

	if k.salt == "" {
		_, err := rand.Read(secret[:16])
		if err != nil {
			return fmt.Errorf("generating a salt: %w", err)
		}
		k.salt = base64.StdEncoding.EncodeToString(secret[:16])
	}

	return nil
}

// readOnlyFaults returns a fault for each read-only field of the request that differs from
// the stored one.
func (s *accountConfig) readOnlyFaults(c Change) (faults []fault.Field) {
	doc := s.toDocument()
	check := func(name string, sent, same bool) {
		if sent && !same {
			faults = append(faults, fault.Field{Field: name, Code: codeReadOnly,
				Message: name + " is managed by the service; leave it out or send it back as it is"})
		}
	}

	check("key_version", c.KeyVersion != nil, c.KeyVersion != nil && s.version() > 0 && *c.KeyVersion == s.version())
	check("key_id", c.KeyID != nil, c.KeyID != nil && doc.KeyID != "" && *c.KeyID == doc.KeyID)
	check("historical_keys", c.HistoricalKeys != nil, maps.Equal(c.HistoricalKeys, doc.HistoricalKeys))
	check("historical_salts", c.HistoricalSalts != nil, maps.Equal(c.HistoricalSalts, doc.HistoricalSalts))

	return faults
}

// Document is the configuration in responses to GET and PUT, secrets included.
type Document struct {
	Enabled         bool              `json:"enabled"`
	Algorithm       string            `json:"algorithm,omitempty"`
	KeyVersion      int64             `json:"key_version,omitempty"`
	KeyID           string            `json:"key_id,omitempty"`
	Salt            string            `json:"salt,omitempty"`
	Key             string            `json:"key,omitempty"`
	HistoricalKeys  map[string]string `json:"historical_keys"`
	HistoricalSalts map[string]string `json:"historical_salts"`
}

// String returns a text without the secrets, for logs and messages.
func (d *Document) String() string { return "encryption configuration (not shown)" }

// GoString is String for %#v.
func (d *Document) GoString() string { return d.String() }

func (s *accountConfig) toDocument() *Document {
	d := &Document{
		Enabled: s.enabled, Algorithm: s.algorithm, KeyVersion: s.version(), KeyID: s.currentKeyID(),
		HistoricalKeys: map[string]string{}, HistoricalSalts: map[string]string{},
	}
	current, ok := s.currentKey()
	if !ok {
		return d
	}

	d.Key, d.Salt = current.key, current.salt
	for i, old := range s.versions[:len(s.versions)-1] {
		version := strconv.Itoa(i + 1)
		d.HistoricalKeys[version], d.HistoricalSalts[version] = old.key, old.salt
	}

	return d
}
