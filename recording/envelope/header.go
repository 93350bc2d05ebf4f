package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Header describes a sealed recording. It has two parts: the core, which never changes,
// and the key block, which Rewrap replaces. The fields can be read without a key; they
// are authentic only after the recording is opened.
type Header struct {
	// The core.
	Suite       Suite
	AccountID   string
	RecordingID string
	ContentType string        // of the upload, may be ""
	Created     time.Time     // milliseconds, UTC
	commitment  [keySize]byte // derived from the data key, which it binds to the core

	// The key block.
	KeyID           string
	KeyVersion      uint32
	Iterations      uint32         // of PBKDF2
	Salt            [saltSize]byte // the recording's own
	saltFingerprint [fingerprintSize]byte
	wrappedKey      [wrappedKeySize]byte // the data key, sealed under one that the root and Salt give
}

const (
	magic         = "\x89TRKREC\n"
	formatVersion = 1
	kdfPBKDF2     = 1

	coreFixedSize     = len(magic) + 1 + 1 + 3 + 4 + 8 + keySize
	keyBlockFixedSize = 1 + 4 + 4 + saltSize + fingerprintSize + wrappedKeySize + 1

	// MaxHeader is the length of the longest header there can be.
	MaxHeader = coreFixedSize + maxAccount + maxRecording + maxContentType + keyBlockFixedSize + maxKeyID + digestSize

	maxAccount     = 64
	maxRecording   = 128
	maxContentType = 127
	maxKeyID       = 128
)

// Patterns of the texts in a header.
var (
	idPattern          = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	contentTypePattern = regexp.MustCompile(`^[\x20-\x7e]*$`)
)

// ValidID reports whether s can be a recording's id: 1 to 128 characters of A-Z a-z 0-9 _
// . - that do not begin with a dot.
func ValidID(s string) bool {
	return len(s) <= maxRecording && idPattern.MatchString(s) && s[0] != '.'
}

// ValidContentType reports whether s can be a header's content type: at most 127 printable
// ASCII characters.
func ValidContentType(s string) bool {
	return len(s) <= maxContentType && contentTypePattern.MatchString(s)
}

func (h *Header) validate() error {
	switch {
	case !h.Suite.isKnown():
		return fmt.Errorf("%v is unknown", h.Suite)
	case len(h.AccountID) > maxAccount || !idPattern.MatchString(h.AccountID):
		return errors.New("bad account id")
	case !ValidID(h.RecordingID):
		return errors.New("bad recording id")
	case !ValidContentType(h.ContentType):
		return errors.New("bad content type")
	case h.Created.UnixMilli() < 0:
		return errors.New("created before 1970")
	case len(h.KeyID) > maxKeyID || !idPattern.MatchString(h.KeyID):
		return errors.New("bad key id")
	case h.KeyVersion == 0:
		return errors.New("key version 0")
	case h.Iterations < minIterations || h.Iterations > maxIterations:
		return fmt.Errorf("%d iterations of PBKDF2", h.Iterations)
	}

	return nil
}

// Len returns the length of the header in bytes, which is the offset of the first chunk.
func (h *Header) Len() int64 {
	return int64(coreFixedSize + len(h.AccountID) + len(h.RecordingID) + len(h.ContentType) +
		keyBlockFixedSize + len(h.KeyID) + digestSize)
}

func (h *Header) appendCore(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, formatVersion, byte(h.Suite))
	dst = append(dst, byte(len(h.AccountID)), byte(len(h.RecordingID)), byte(len(h.ContentType)))
	dst = binary.BigEndian.AppendUint32(dst, ChunkSize)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Created.UnixMilli()))
	dst = append(dst, h.commitment[:]...)
	dst = append(dst, h.AccountID...)
	dst = append(dst, h.RecordingID...)
	return append(dst, h.ContentType...)
}

func (h *Header) coreDigest() [digestSize]byte { return sha256.Sum256(h.appendCore(nil)) }

// appendKeyFields returns dst with the key block's fields before the wrapped key, and the
// fields after it.
func (h *Header) appendKeyFields(dst []byte) (before, after []byte) {
	dst = append(dst, kdfPBKDF2)
	dst = binary.BigEndian.AppendUint32(dst, h.Iterations)
	dst = binary.BigEndian.AppendUint32(dst, h.KeyVersion)
	dst = append(dst, h.Salt[:]...)
	dst = append(dst, h.saltFingerprint[:]...)
	return dst, append([]byte{byte(len(h.KeyID))}, h.KeyID...)
}

// encode returns the whole header. The checksum at its end, which needs no key,
// distinguishes damage from a wrong key. It does not protect against deliberate changes;
// the wrapped key and the commitment do.
func (h *Header) encode() []byte {
	out, after := h.appendKeyFields(h.appendCore(make([]byte, 0, h.Len())))
	out = append(out, h.wrappedKey[:]...)
	out = append(out, after...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// Inspect reads a header and leaves r at the first chunk. The header is not
// authenticated yet.
func Inspect(r io.Reader) (*Header, error) {
	reader := headerReader{r: r}
	fixed := reader.next(coreFixedSize)
	if fixed == nil || !bytes.HasPrefix(fixed, []byte(magic)) {
		return nil, reader.readError(ErrFormat)
	}
	if fixed[8] != formatVersion {
		return nil, fmt.Errorf("%w: version %d", ErrVersion, fixed[8])
	}

	account, recording, contentType := int(fixed[10]), int(fixed[11]), int(fixed[12])
	if account > maxAccount || recording > maxRecording || contentType > maxContentType {
		return nil, fmt.Errorf("%w: a name is too long", ErrHeader)
	}

	names := reader.next(account + recording + contentType)
	key := reader.next(keyBlockFixedSize)
	if names == nil || key == nil {
		return nil, reader.readError(ErrTruncated)
	}
	if key[keyBlockFixedSize-1] > maxKeyID {
		return nil, fmt.Errorf("%w: a name is too long", ErrHeader)
	}

	keyID := reader.next(int(key[keyBlockFixedSize-1]))
	// Of all that is before the checksum, which is read next.
	sum := sha256.Sum256(reader.consumed)
	checksum := reader.next(digestSize)
	if keyID == nil || checksum == nil {
		return nil, reader.readError(ErrTruncated)
	} else if !bytes.Equal(checksum, sum[:]) {
		return nil, ErrHeader
	}

	h := &Header{
		Suite:           Suite(fixed[9]),
		AccountID:       string(names[:account]),
		RecordingID:     string(names[account : account+recording]),
		ContentType:     string(names[account+recording:]),
		Created:         time.UnixMilli(int64(binary.BigEndian.Uint64(fixed[17:]))).UTC(),
		commitment:      [keySize]byte(fixed[25:]),
		KeyID:           string(keyID),
		Iterations:      binary.BigEndian.Uint32(key[1:]),
		KeyVersion:      binary.BigEndian.Uint32(key[5:]),
		Salt:            [saltSize]byte(key[9:]),
		saltFingerprint: [fingerprintSize]byte(key[9+saltSize:]),
		wrappedKey:      [wrappedKeySize]byte(key[9+saltSize+fingerprintSize:]),
	}
	// After the checksum: damage is not taken for another version.
	size := binary.BigEndian.Uint32(fixed[13:])
	if size != ChunkSize {
		return nil, fmt.Errorf("%w: chunks of %d bytes", ErrVersion, size)
	}

	if !h.Suite.isKnown() {
		return nil, fmt.Errorf("%w: %v", ErrVersion, h.Suite)
	}
	if key[0] != kdfPBKDF2 {
		return nil, fmt.Errorf("%w: key derivation %d", ErrVersion, key[0])
	}
	if err := h.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHeader, err)
	}

	return h, nil
}

// headerReader reads a header in parts and stores all bytes that it has read.
type headerReader struct {
	r        io.Reader
	consumed []byte
	err      error
}

// next returns the next n bytes, nil after an error.
func (r *headerReader) next(n int) []byte {
	if r.err != nil {
		return nil
	}

	start := len(r.consumed)
	r.consumed = append(r.consumed, make([]byte, n)...)
	_, r.err = io.ReadFull(r.r, r.consumed[start:])
	if r.err != nil {
		return nil
	}

	return r.consumed[start:]
}

// readError returns the error of the reader, or truncated if the file ended.
func (r *headerReader) readError(truncated error) error {
	if r.err == nil || r.err == io.EOF || r.err == io.ErrUnexpectedEOF {
		return truncated
	}
	return fmt.Errorf("reading the header: %w", r.err)
}
