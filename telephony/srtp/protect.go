package srtp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pion/rtp"
	pion "github.com/pion/srtp/v3"
)

const (
	// Overhead is the largest number of bytes that encryption adds to a packet.
	Overhead = 16
	// replayWindow is the number of packets that may arrive out of order.
	replayWindow = 128
	// maxSources is the number of sources (SSRCs) whose packets are accepted under one key.
	maxSources = 16
)

func newContext(key Key, options ...pion.ContextOption) (*pion.Context, error) {
	parameters, ok := key.cipher.parameters()
	if !ok || len(key.secret) != parameters.keyBytes+parameters.saltBytes {
		return nil, errors.New("srtp: no key")
	}

	secret := []byte(key.secret)
	masterKey, salt := secret[:parameters.keyBytes], secret[parameters.keyBytes:]
	context, err := pion.CreateContext(masterKey, salt, parameters.profile, options...)
	if err != nil {
		return nil, fmt.Errorf("srtp: %w", err)
	}

	return context, nil
}

// Sender encrypts the packets of one source.
type Sender struct {
	context *pion.Context
	header  rtp.Header // of the packet in hand; reused
	buffer  []byte     // of the last encrypted packet; reused
}

// NewSender returns a Sender.
func NewSender(key Key) (*Sender, error) {
	context, err := newContext(key)
	if err != nil {
		return nil, err
	}
	return &Sender{context: context}, nil
}

// Protect returns the encrypted packet, which is valid until the next call.
func (s *Sender) Protect(packet []byte) ([]byte, error) {
	protected, err := s.context.EncryptRTP(s.buffer, packet, &s.header)
	if err != nil {
		return nil, fmt.Errorf("srtp: encrypting: %w", err)
	}
	s.buffer = protected[:0]
	return protected, nil
}

// Receiver authenticates and decrypts the packets of one peer.
type Receiver struct {
	context *pion.Context
	header  rtp.Header          // of the packet in hand; reused
	sources map[uint32]struct{} // SSRCs of authentic packets
}

// NewReceiver returns a Receiver.
func NewReceiver(key Key) (*Receiver, error) {
	context, err := newContext(key, pion.SRTPReplayProtection(replayWindow))
	if err != nil {
		return nil, err
	}
	return &Receiver{context: context, sources: map[uint32]struct{}{}}, nil
}

var (
	errTooManySources = errors.New("srtp: too many sources")
	errTooShort       = errors.New("srtp: not an RTP packet")
)

const headerSize = 12 // of RTP, without CSRCs

// Unprotect decrypts a packet in place and returns it without its authentication tag. The error is not
// nil for a packet that is not authentic, or that was received before.
func (r *Receiver) Unprotect(packet []byte) ([]byte, error) {
	if len(packet) < headerSize {
		return nil, errTooShort
	}

	source := binary.BigEndian.Uint32(packet[8:])
	_, known := r.sources[source]
	if !known && len(r.sources) >= maxSources {
		return nil, errTooManySources
	}

	plain, err := r.context.DecryptRTP(packet, packet, &r.header)
	if err != nil {
		return nil, fmt.Errorf("srtp: decrypting: %w", err)
	}

	// An authentic one: forged packets take no place among the sources.
	if !known {
		r.sources[source] = struct{}{}
	}

	return plain, nil
}
