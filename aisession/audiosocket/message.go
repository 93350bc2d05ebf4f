package audiosocket

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The kinds of messages (Asterisk, res_audiosocket.h).
const (
	kindHangup = 0x00
	kindUUID   = 0x01
	kindDTMF   = 0x03
	kindSlin8  = 0x10
	kindError  = 0xff
)

const headerSize = 3

// rates are the kinds of audio that Asterisk has and we take.
var rates = map[byte]int{kindSlin8: 8000, 0x11: 12000, 0x12: 16000, 0x13: 24000, 0x14: 32000, 0x16: 48000}

// message is one message; its payload is the reader's memory until the next.
type message struct {
	kind    byte
	payload []byte
}

// reader reads messages.
type reader struct {
	from   io.Reader
	buffer [headerSize + 0xffff]byte
}

// next reads one message. io.EOF is the end between two messages.
func (r *reader) next() (message, error) {
	if _, err := io.ReadFull(r.from, r.buffer[:headerSize]); err != nil {
		return message{}, err
	}
	length := int(binary.BigEndian.Uint16(r.buffer[1:]))
	payload := r.buffer[headerSize : headerSize+length]
	if _, err := io.ReadFull(r.from, payload); err != nil {
		return message{}, fmt.Errorf("a message cut short: %w", err)
	}
	return message{r.buffer[0], payload}, nil
}

// appendMessage appends a message; a payload over 64 KiB - 1 is cut.
func appendMessage(b []byte, kind byte, payload []byte) []byte {
	payload = payload[:min(len(payload), 0xffff)]
	b = append(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	return append(b, payload...)
}
