package envelope

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
)

// Iterations is the number of iterations of PBKDF2 for new recordings (OWASP's figure for
// HMAC-SHA-256). An account's key may be a phrase, so it is stretched, once per key version
// and process (RootCache).
const Iterations = 600_000

// Bounds on the iterations in a header: fewer would be a downgrade, more would waste
// processor time.
const (
	minIterations = Iterations
	maxIterations = 10_000_000
)

// Root is the key that is derived from one version of an account's key and salt. It opens
// every recording sealed under that version. Wipe it after use.
type Root struct {
	key        [keySize]byte
	salt       [digestSize]byte
	iterations uint32
}

// NewRoot derives a root from the bytes of an account's key and salt, which are not decoded
// from base64 or hex. It needs about 0.1 s of a core.
func NewRoot(key, salt string, iterations uint32) (*Root, error) {
	if iterations < minIterations || iterations > maxIterations {
		return nil, fmt.Errorf("%w: %d iterations of PBKDF2", ErrVersion, iterations)
	}

	// FIPS 140 requires a salt of at least 16 bytes. An account's salt may be shorter, so
	// its digest is used.
	r := &Root{iterations: iterations, salt: sha256.Sum256([]byte(labelSalt + salt))}
	derived, err := pbkdf2.Key(sha256.New, key, r.salt[:], int(iterations), keySize)
	if err != nil {
		return nil, fmt.Errorf("PBKDF2: %w", err)
	}

	copy(r.key[:], derived)
	clear(derived)
	return r, nil
}

// Wipe clears the key.
func (r *Root) Wipe() { *r = Root{} }

func (r *Root) wrapCipher(recordingSalt *[saltSize]byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, r.key[:], recordingSalt[:], labelWrap, keySize)
	if err != nil {
		return nil, fmt.Errorf("deriving the wrapping key: %w", err)
	}
	defer clear(key)
	return randomNonceGCM(key)
}
