package envelope

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
)

// From the account's key and salt to the bytes of a chunk:
//
//	root = PBKDF2(key, SHA-256(label ‖ salt))      once per key version
//	wrap = HKDF(root, recording's own salt)        opens the data key
//	data key: random, one per recording, sealed under wrap in the key block
//	chunk keys, commitment = HKDF(data key, label)
const (
	keySize         = 32
	digestSize      = sha256.Size
	saltSize        = 32
	fingerprintSize = 16                // of the account salt's fingerprint
	wrappedKeySize  = 12 + keySize + 16 // the wrapped data key
)

// Labels separate the derived keys from each other and from those of later formats.
const (
	labelSalt   = "trunkline recording 1 salt"
	labelWrap   = "trunkline recording 1 wrap"
	labelCommit = "trunkline recording 1 commitment"
	labelGCM    = "trunkline recording 1 AES-256-GCM"
	labelCBC    = "trunkline recording 1 AES-256-CBC"
	labelMAC    = "trunkline recording 1 HMAC-SHA-256"
)

// subkey derives a key for the purpose of a label from a recording's data key, here and elsewhere dek.
func subkey(dek *[keySize]byte, label string) (key [keySize]byte, err error) {
	derived, err := hkdf.Key(sha256.New, dek[:], nil, label, keySize)
	if err != nil {
		return key, fmt.Errorf("deriving a key: %w", err)
	}
	copy(key[:], derived)
	clear(derived)
	return key, nil
}

// wrapKey sets the key block's salt, fingerprint and wrapped key: dek sealed under a key
// derived from root. The core and all other fields of the key block are authenticated
// with the wrapped key.
func (h *Header) wrapKey(dek *[keySize]byte, root *Root) error {
	_, err := rand.Read(h.Salt[:])
	if err != nil {
		return fmt.Errorf("generating a salt: %w", err)
	}

	h.Iterations = root.iterations
	h.saltFingerprint = root.fingerprint(&h.Salt)
	aead, err := root.wrapCipher(&h.Salt)
	if err != nil {
		return err
	}

	copy(h.wrappedKey[:], aead.Seal(nil, nil, dek[:], h.wrappedKeyAAD()))
	return nil
}

// unwrapKey checks the header against root and returns the data key.
func (h *Header) unwrapKey(root *Root) (*[keySize]byte, error) {
	if root.iterations != h.Iterations {
		return nil, fmt.Errorf("%w: root of %d iterations, header of %d", ErrKey, root.iterations, h.Iterations)
	}

	fingerprint := root.fingerprint(&h.Salt)
	if subtle.ConstantTimeCompare(fingerprint[:], h.saltFingerprint[:]) != 1 {
		return nil, ErrSalt
	}

	aead, err := root.wrapCipher(&h.Salt)
	if err != nil {
		return nil, err
	}

	var dek [keySize]byte
	_, err = aead.Open(dek[:0], nil, h.wrappedKey[:], h.wrappedKeyAAD())
	if err != nil {
		return nil, ErrKey
	}

	commitment, err := subkey(&dek, labelCommit)
	if err != nil {
		return nil, err
	}

	if subtle.ConstantTimeCompare(commitment[:], h.commitment[:]) != 1 {
		clear(dek[:])
		return nil, ErrHeader
	}

	return &dek, nil
}

// wrappedKeyAAD returns the additional authenticated data of the wrapped data key.
func (h *Header) wrappedKeyAAD() []byte {
	digest := h.coreDigest()
	before, after := h.appendKeyFields(nil)
	return slices.Concat(digest[:], before, after)
}

// fingerprint returns a keyed hash of the account's salt, which distinguishes a wrong salt
// from a wrong key. Its key is the recording's salt, so that it does not reveal which
// recordings have the same account salt.
func (r *Root) fingerprint(recordingSalt *[saltSize]byte) (fingerprint [fingerprintSize]byte) {
	mac := hmac.New(sha256.New, recordingSalt[:])
	mac.Write(r.salt[:])
	copy(fingerprint[:], mac.Sum(nil))
	return fingerprint
}

// setKey replaces the key block by one with dek wrapped under key.
func (h *Header) setKey(dek *[keySize]byte, key Key) error {
	if key.Root == nil {
		return fmt.Errorf("%w: no key", ErrParams)
	}
	h.KeyID, h.KeyVersion, h.Iterations = key.ID, key.Version, key.Root.iterations
	if err := h.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrParams, err)
	}
	return h.wrapKey(dek, key.Root)
}
