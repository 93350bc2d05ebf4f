package esl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Content-Types of mod_event_socket.
const (
	typeAuth       = "auth/request"
	typeReply      = "command/reply"
	typeAPI        = "api/response"
	typePlain      = "text/event-plain"
	typeJSON       = "text/event-json"
	typeDisconnect = "text/disconnect-notice"
	typeRejection  = "text/rude-rejection"
	typeLog        = "log/data"
)

// frame is one message: headers, an empty line, and Content-Length bytes.
type frame struct {
	headers headers
	body    []byte
}

func (f frame) contentType() string { return f.headers.first("Content-Type") }

// readFrame reads the next message. It returns io.EOF only for end of input between messages.
func readFrame(in *bufio.Reader, limit int) (frame, error) {
	block, err := readHeaderBlock(in, limit)
	if err != nil {
		return frame{}, err
	}

	h, _, err := parseHeaders(string(block))
	if err != nil {
		return frame{}, err
	}

	f := frame{headers: h}
	if f.contentType() == "" {
		return frame{}, fmt.Errorf("%w: no Content-Type", ErrMalformed)
	}

	length, err := contentLength(h, limit-len(block))
	if err != nil || length == 0 {
		return f, err
	}

	f.body = make([]byte, length)
	_, err = io.ReadFull(in, f.body)
	if err != nil {
		return frame{}, unexpectedEOF(err)
	}

	return f, nil
}

// readHeaderBlock reads up to the empty line that ends a header block. It skips empty lines before the
// first header, as other clients of the event socket do.
func readHeaderBlock(in *bufio.Reader, limit int) ([]byte, error) {
	var block []byte
	for skipped := 0; ; {
		line, err := in.ReadSlice('\n')
		if len(block)+len(line)+skipped > limit || errors.Is(err, bufio.ErrBufferFull) {
			return nil, ErrTooLarge
		}
		if err != nil {
			if len(block)+len(line) > 0 {
				err = unexpectedEOF(err)
			}
			return nil, err
		}

		if !isBlank(line) {
			block = append(block, line...)
			continue
		}
		if len(block) > 0 {
			return block, nil
		}

		skipped += len(line)
	}
}

// contentLength returns the Content-Length, 0 without one. It is ErrTooLarge above limit.
func contentLength(h headers, limit int) (int, error) {
	text := h.first("Content-Length")
	if text == "" {
		return 0, nil
	}

	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > uint64(max(limit, 0)):
		return 0, ErrTooLarge
	case err != nil:
		return 0, fmt.Errorf("%w: Content-Length is not a number", ErrMalformed)
	}

	return int(n), nil
}

// unexpectedEOF converts io.EOF inside a message to io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
