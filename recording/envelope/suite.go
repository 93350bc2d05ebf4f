package envelope

import (
	"encoding/binary"
	"fmt"
)

// ChunkSize is the number of bytes of audio in a chunk; only the last may have fewer.
// With 64 KiB the cost per chunk is under a percent, and a seek decrypts at most 4 s of
// G.711 too much.
const ChunkSize = 64 << 10

// maxChunks keeps the random nonces of one file key far from their bound of
// 2^32 (NIST SP 800-38D, 8.3): 256 TiB of audio.
const maxChunks = 1 << 32

// Suite is the algorithm that protects the body of a recording.
type Suite byte

// The suites, numbered as in the header.
const (
	AES256GCM Suite = 1 // AES-256-GCM
	AES256CBC Suite = 2 // AES-256-CBC, then HMAC-SHA-256 over the ciphertext
)

var suiteNames = map[Suite]string{AES256GCM: "AES-256-GCM", AES256CBC: "AES-256-CBC"}

// String returns the suite's name in the configuration's field "algorithm".
func (s Suite) String() string {
	if name, ok := suiteNames[s]; ok {
		return name
	}
	return fmt.Sprintf("suite %d", byte(s))
}

func (s Suite) isKnown() bool { _, ok := suiteNames[s]; return ok }

// ParseSuite finds the suite of a configuration's algorithm.
func ParseSuite(algorithm string) (Suite, bool) {
	for s, name := range suiteNames {
		if name == algorithm {
			return s, true
		}
	}
	return 0, false
}

// chunkCipher protects single chunks under one recording's keys. Both methods
// append to dst, which must not overlap their input.
type chunkCipher interface {
	seal(dst, plain []byte, aad *chunkAAD) ([]byte, error)
	open(dst, sealed []byte, aad *chunkAAD) (plain []byte, ok bool)
	overhead() int     // bytes a full chunk grows by
	minSealedLen() int // bytes of the shortest sealed chunk
}

func (s Suite) newCipher(dek *[keySize]byte) (chunkCipher, error) {
	switch s {
	case AES256GCM:
		return newGCM(dek)
	case AES256CBC:
		return newCBC(dek)
	}
	return nil, fmt.Errorf("%w: %v", ErrVersion, s)
}

// chunkAAD is the position of a chunk, authenticated with it: SHA-256 of the core
// (which recording), the chunk's index, and whether it is the last.
type chunkAAD [digestSize + 8 + 1]byte

func newChunkAAD(core [digestSize]byte) *chunkAAD {
	var p chunkAAD
	copy(p[:], core[:])
	return &p
}

func (p *chunkAAD) forChunk(index uint64, final bool) *chunkAAD {
	binary.BigEndian.PutUint64(p[digestSize:], index)
	p[digestSize+8] = 0
	if final {
		p[digestSize+8] = 1
	}
	return p
}

// opener opens the chunks of one recording and returns the cause of a refusal.
type opener struct {
	chunkCipher
	aad *chunkAAD
}

func (o *opener) openChunk(dst, sealed []byte, index uint64, final bool) ([]byte, error) {
	if len(sealed) < o.minSealedLen() || index >= maxChunks {
		return nil, &ChunkError{index, ErrTruncated}
	}
	plain, ok := o.open(dst, sealed, o.aad.forChunk(index, final))
	if !ok {
		return nil, &ChunkError{index, o.diagnose(dst, sealed, index, final)}
	}
	// All chunks but the last are full, and a last one after others is not empty: there is
	// only one division of the same audio.
	if n := len(plain); n > ChunkSize || !final && n != ChunkSize || final && n == 0 && index > 0 {
		clear(plain)
		return nil, &ChunkError{index, ErrAltered}
	}
	return plain, nil
}

// diagnose distinguishes a recording that lost or gained whole chunks from an
// altered chunk: then the chunk is authentic with the other finality.
func (o *opener) diagnose(dst, sealed []byte, index uint64, final bool) error {
	plain, ok := o.open(dst, sealed, o.aad.forChunk(index, !final))
	clear(plain)
	switch {
	case !ok:
		return ErrAltered
	case final:
		return ErrTruncated
	default:
		return ErrTrailing
	}
}
