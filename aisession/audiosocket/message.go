package audiosocket

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Message kinds (Asterisk, res_audiosocket.h).
const (
	kindHangup = 0x00
	kindUUID   = 0x01
	kindDTMF   = 0x03
	kindSlin8  = 0x10
	kindSlin12 = 0x11
	kindSlin16 = 0x12
	kindSlin24 = 0x13
	kindSlin32 = 0x14
	kindSlin48 = 0x16
	kindError  = 0xff
)

const headerSize = 3

// rates maps the supported audio kinds to their rates in Hz.
var rates = map[byte]int{
	kindSlin8: 8000, kindSlin12: 12000, kindSlin16: 16000, kindSlin24: 24000, kindSlin32: 32000, kindSlin48: 48000,
}

// message is one message. Its payload is the reader's memory and is valid until the next message.
type message struct {
	kind    byte
	payload []byte
}

// reader reads messages from a connection.
type reader struct {
	input  io.Reader
	buffer [headerSize + 0xffff]byte
}

// next reads one message. It returns io.EOF only for the end of input between messages.
func (r *reader) next() (message, error) {
	_, err := io.ReadFull(r.input, r.buffer[:headerSize])
	if err != nil {
		return message{}, err
	}

	length := int(binary.BigEndian.Uint16(r.buffer[1:]))
	payload := r.buffer[headerSize : headerSize+length]
	_, err = io.ReadFull(r.input, payload)
	if err != nil {
		return message{}, fmt.Errorf("message truncated: %w", err)
	}

	return message{r.buffer[0], payload}, nil
}

// appendMessage appends a message to b. It truncates a payload above 64 KiB - 1.
func appendMessage(b []byte, kind byte, payload []byte) []byte {
	payload = payload[:min(len(payload), 0xffff)]
	b = append(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	return append(b, payload...)
}
