package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"trunkline/internal/fault"
)

// initialBuffer is the initial buffer size in bytes for a body of unknown length.
const initialBuffer = 8 << 10

var errBodyTooLarge = fault.New(fault.KindTooLarge, "The body is over 32 MiB")

// readBody reads and decompresses the whole body. Every byte of its buffer is
// reserved before it is allocated, and beyond maxInitialReserve only as data arrives:
// neither a Content-Length nor a small gzip body can claim more.
func readBody(r Request, memory *reservation) ([]byte, error) {
	// Compressed bytes are bounded too: an endless gzip stream may decompress to
	// nothing.
	compressed := &limitReader{from: r.Body, bytesLeft: MaxBody}
	switch strings.ToLower(strings.TrimSpace(r.ContentEncoding)) {
	case "", "identity":
		return readAll(compressed, r.ContentLength, memory)
	case "gzip", "x-gzip":
		unzip, err := gzip.NewReader(compressed)
		if err != nil {
			return nil, bodyError(err)
		}
		return readAll(&limitReader{from: unzip, bytesLeft: MaxBody}, -1, memory)
	default:
		return nil, fault.New(fault.KindUnsupported, "The Content-Encoding must be gzip or absent")
	}
}

// readAll reads until EOF. length is the expected number of bytes, -1 when unknown.
func readAll(from io.Reader, length int64, memory *reservation) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			if err := growBuffer(&body, length, memory); err != nil {
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

// growBuffer enlarges the buffer: to a known length plus one byte, which finds EOF, if that memory is
// reserved already; else to twice its size. Old and new buffer both count while it copies.
func growBuffer(body *[]byte, length int64, memory *reservation) error {
	size := min(max(2*cap(*body), initialBuffer), MaxBody+1)
	whole := int(length) + 1
	if cap(*body) < whole && (whole <= size || memory.covers(whole)) {
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

// replaceInvalidUTF8 returns the body of a platform with U+FFFD for bytes that are not UTF-8: a caller's name
// in another character set does not make the switch's records unacceptable.
func (i *Ingest) replaceInvalidUTF8(body []byte, memory *reservation) ([]byte, error) {
	if utf8.Valid(body) {
		return body, nil
	}
	if err := memory.grow(len(body) * len(replacement)); err != nil { // all of them, at worst
		return nil, err
	}

	i.metrics.repaired.Inc()
	valid := bytes.ToValidUTF8(body, []byte(replacement))
	memory.shrink(len(body)*len(replacement) - cap(valid))

	return valid, nil
}

// replacement is U+FFFD, which stands for bytes that are not UTF-8.
const replacement = "\uFFFD"

// bodyError converts an error of reading a body into a fault.
func bodyError(err error) error {
	if errors.Is(err, errBodyTooLarge) {
		return errBodyTooLarge
	}
	return &fault.Error{
		Kind:    fault.KindInvalid,
		Message: "The body is truncated or does not match its Content-Encoding",
		Cause:   err,
	}
}

// limitReader reads at most bytesLeft bytes. It returns errBodyTooLarge for more.
type limitReader struct {
	from      io.Reader
	bytesLeft int
}

func (l *limitReader) Read(p []byte) (int, error) {
	// One byte more than allowed shows that there is more.
	if len(p) > l.bytesLeft+1 {
		p = p[:l.bytesLeft+1]
	}
	n, err := l.from.Read(p)
	if n > l.bytesLeft {
		return l.bytesLeft, errBodyTooLarge
	}
	l.bytesLeft -= n
	return n, err
}
