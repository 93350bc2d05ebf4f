package ingest

import (
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"trunkline/internal/fault"
)

// firstBuffer is how much is read before the buffer begins to double.
const firstBuffer = 8 << 10

var errBodyTooLarge = fault.New(fault.KindTooLarge, "The body is over 32 MiB")

// readBody reads the whole body, unpacked, and leases every byte of its buffer
// before it takes it: neither a Content-Length nor a small gzip body can claim
// more than what has arrived.
func readBody(r Request, memory *lease) ([]byte, error) {
	// Packed bytes are bounded too: gzip can go on for ever without unpacking
	// to anything.
	packed := &limited{from: r.Body, left: MaxBody}
	switch strings.ToLower(strings.TrimSpace(r.ContentEncoding)) {
	case "", "identity":
		return readAll(packed, r.ContentLength, memory)
	case "gzip", "x-gzip":
		unzip, err := gzip.NewReader(packed)
		if err != nil {
			return nil, bodyError(err)
		}
		return readAll(&limited{from: unzip, left: MaxBody}, -1, memory)
	default:
		return nil, fault.New(fault.KindUnsupported, "The Content-Encoding must be gzip or none")
	}
}

// readAll reads to the end. length is how much there is, -1 when unknown.
func readAll(from io.Reader, length int64, memory *lease) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			if err := enlarge(&body, length, memory); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, bodyError(err)
		}
	}
}

// enlarge makes room in the buffer: for all that a known length announces where
// the memory is reserved already, else twice as much as before. The byte beyond
// the length finds the end. While it copies, old and new count both.
func enlarge(body *[]byte, length int64, memory *lease) error {
	size := min(max(2*cap(*body), firstBuffer), MaxBody+1)
	if whole := int(length) + 1; cap(*body) < whole && (whole <= size || memory.has(whole)) {
		size = whole
	}
	if err := memory.grow(size); err != nil {
		return err
	}
	grown := make([]byte, len(*body), size)
	copy(grown, *body)
	memory.shrink(cap(*body))
	*body = grown
	return nil
}

// bodyError says what a reader's error means to the sender.
func bodyError(err error) error {
	if errors.Is(err, errBodyTooLarge) {
		return errBodyTooLarge
	}
	return &fault.Error{
		Kind:    fault.KindInvalid,
		Message: "The body ends early or is not encoded as its Content-Encoding says",
		Cause:   err,
	}
}

// limited reads at most left bytes; one more is errBodyTooLarge.
type limited struct {
	from io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if len(p) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.from.Read(p)
	if n > l.left {
		return l.left, errBodyTooLarge
	}
	l.left -= n
	return n, err
}
