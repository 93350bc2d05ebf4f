package envelope

import (
	"encoding/binary"
	"fmt"
)

// ChunkSize is the number of bytes of audio in a chunk; only the last may have fewer.
// With 64 KiB the cost per chunk is under a percent, and a seek decrypts at most 4 s of
// G.711 too much.
const ChunkSize = 64 << 10

// maxChunks is the maximum number of chunks of a recording, 256 TiB of audio: the bound on
// random nonces under one key (NIST SP 800-38D, 8.3).
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

// chunkCipher seals and opens single chunks under one recording's keys. Both methods
// append to dst, which must not overlap their input.
type chunkCipher interface {
	encrypt(dst, plain []byte, aad *chunkAAD) ([]byte, error)
	decrypt(dst, sealed []byte, aad *chunkAAD) (plain []byte, ok bool)
	overhead() int     // bytes that sealing adds to a full chunk
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

// chunkAAD is the additional authenticated data of a chunk: SHA-256 of the core, which
// identifies the recording, the chunk's index, and 1 if it is the last, else 0.
type chunkAAD [digestSize + 8 + 1]byte

func newChunkAAD(core [digestSize]byte) *chunkAAD {
	var p chunkAAD
	copy(p[:], core[:])
	return &p
}

// forChunk sets the index and the finality of a chunk, and returns p.
func (p *chunkAAD) forChunk(index uint64, final bool) *chunkAAD {
	binary.BigEndian.PutUint64(p[digestSize:], index)
	p[digestSize+8] = 0
	if final {
		p[digestSize+8] = 1
	}
	return p
}

// opener opens the chunks of one recording.
type opener struct {
	chunkCipher
	aad *chunkAAD
}

func (o *opener) openChunk(dst, sealed []byte, index uint64, final bool) ([]byte, error) {
	if len(sealed) < o.minSealedLen() || index >= maxChunks {
		return nil, &ChunkError{index, ErrTruncated}
	}

	plain, ok := o.decrypt(dst, sealed, o.aad.forChunk(index, final))
	if !ok {
		return nil, &ChunkError{index, o.diagnose(dst, sealed, index, final)}
	}

	// All chunks but the last must be full, and a last one after others must not be empty,
	// so that the same audio has only one division into chunks.
	n := len(plain)
	if n > ChunkSize || !final && n != ChunkSize || final && n == 0 && index > 0 {
		clear(plain)
		return nil, &ChunkError{index, ErrAltered}
	}

	return plain, nil
}

// diagnose returns the cause of a refused chunk. If it is authentic with the other
// finality, whole chunks were removed or appended; otherwise the chunk was altered.
func (o *opener) diagnose(dst, sealed []byte, index uint64, final bool) error {
	plain, ok := o.decrypt(dst, sealed, o.aad.forChunk(index, !final))
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
