package sip

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"trunkline/internal/fault"
	"trunkline/telephony/srtp"
)

// Format is a codec that both sides agreed on.
type Format struct {
	Codec
	Send    uint8 // payload type for packets to the peer
	Receive uint8 // payload type in packets from the peer
}

// Agreed is the result of an offer and its answer, from the local side.
type Agreed struct {
	// Formats begins with the codec to send. A peer that accepted several codecs of our offer may send
	// any of them.
	Formats  []Format
	Events   Format         // telephone-event; its Name is "" when the peer has none
	Remote   netip.AddrPort // media address of the peer
	Sends    bool           // the peer sends
	Receives bool           // the peer wants to receive
	Keys     srtp.Keys      // SRTP keys; the zero value is plain RTP
}

// Local has the local side of one leg's offers and answers: media address and codecs. Its methods are
// safe for concurrent use.
type Local struct {
	address netip.AddrPort
	codecs  []Codec

	mu         sync.Mutex
	last       Session // last description sent
	encryption Encryption
	keys       map[srtp.Suite]srtp.Key // our own
	agreed     struct {                // SRTP that was agreed on
		suite  srtp.Suite // "" for none
		secure bool       // described as RTP/SAVP
	}
}

// NewLocal returns the local side of a leg that receives media at address. codecs are in order of
// preference, without telephone-event, which is always added.
func NewLocal(address netip.AddrPort, codecs []Codec) *Local {
	return &Local{
		address: address,
		codecs:  slices.Clone(codecs),
		keys:    map[srtp.Suite]srtp.Key{},
		last:    Session{ID: uint64(rand.Uint32()), Version: uint64(rand.Uint32())},
	}
}

// Offer returns an offer with the given codecs, or with all codecs of l. Codecs keep their payload
// types.
func (l *Local) Offer(codecs ...Codec) *Session {
	if len(codecs) == 0 {
		codecs = l.codecs
	}
	return l.describe(withEvents(codecs), SendRecv, l.offered(), 0, nil)
}

// withEvents appends telephone-event for each clock.
func withEvents(codecs []Codec) []Codec {
	all := slices.Clone(codecs)
	for _, c := range codecs {
		if _, had := find(all, Events(c.Clock)); !had {
			all = append(all, Events(c.Clock))
		}
	}
	return all
}

// Answer returns the answer to an offer, with one codec: the first of prefer, then of the offer's
// order, that both sides have. The error is fault.KindUnsupported if there is none.
func (l *Local) Answer(offer *Session, prefer ...Codec) (*Session, Agreed, error) {
	chosen, ok := l.choose(offer, prefer)
	if !ok {
		return nil, Agreed{}, fault.New(fault.KindUnsupported, "the two sides have no common codec")
	}
	answer, keys, err := l.answered(offer)
	if err != nil {
		return nil, Agreed{}, err
	}
	agreed := Agreed{
		Keys:    keys,
		Formats: []Format{{Codec: chosen, Send: chosen.PayloadType, Receive: chosen.PayloadType}},
		Remote:  offer.Address, Sends: offer.Direction.Sends(), Receives: offer.Direction.Receives(),
	}
	codecs := []Codec{chosen}
	if events, ok := offer.events(chosen.Clock); ok {
		agreed.Events = Format{Codec: events, Send: events.PayloadType, Receive: events.PayloadType}
		codecs = append(codecs, events)
	}
	return l.describe(codecs, offer.Direction.answer(), answer, offer.audio, offer.refused), agreed, nil
}

func (l *Local) choose(offer *Session, prefer []Codec) (Codec, bool) {
	for _, wanted := range slices.Concat(prefer, offer.Codecs) {
		ours, had := find(l.codecs, wanted)
		theirs, offered := find(offer.Codecs, wanted)
		if had && offered {
			theirs.Parameters = ours.Parameters
			return theirs, true
		}
	}
	return Codec{}, false
}

// events returns the telephone-event with the given clock in Hz, or else any.
func (s *Session) events(clock uint32) (Codec, bool) {
	if c, ok := find(s.Codecs, Events(clock)); ok {
		return c, true
	}
	i := slices.IndexFunc(s.Codecs, Codec.IsEvents)
	if i < 0 {
		return Codec{}, false
	}
	return s.Codecs[i], true
}

// Accept applies the answer to an offer of l.
func (l *Local) Accept(offer, answer *Session) (Agreed, error) {
	agreed := Agreed{Remote: answer.Address, Sends: answer.Direction.Sends(), Receives: answer.Direction.Receives()}
	for _, theirs := range answer.Codecs {
		if ours, ok := find(offer.Codecs, theirs); ok && !theirs.IsEvents() {
			agreed.Formats = append(agreed.Formats, Format{Codec: ours, Send: theirs.PayloadType, Receive: ours.PayloadType})
		}
	}
	if len(agreed.Formats) == 0 {
		return Agreed{}, fault.New(fault.KindUnsupported, "the answer has no codec of the offer")
	}
	var err error
	if agreed.Keys, err = l.accepted(offer, answer); err != nil {
		return Agreed{}, err
	}
	if theirs, ok := answer.events(agreed.Formats[0].Clock); ok {
		if ours, ok := find(offer.Codecs, theirs); ok {
			agreed.Events = Format{Codec: ours, Send: theirs.PayloadType, Receive: ours.PayloadType}
		}
	}
	return agreed, nil
}

// describe returns the next description. Its version increases when it differs from the last one (RFC
// 3264, section 8).
func (l *Local) describe(codecs []Codec, direction Direction, encryption security, audio int, others []refusedMedia) *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := Session{
		ID: l.last.ID, Version: l.last.Version, Address: l.address, Codecs: codecs,
		Direction: direction, PacketTime: packetTime, Secure: encryption.secure, Crypto: encryption.crypto, audio: audio, refused: others,
	}
	if l.last.Codecs != nil && (direction != l.last.Direction || !slices.Equal(codecs, l.last.Codecs) || !slices.Equal(next.Crypto, l.last.Crypto)) {
		next.Version++
	}
	l.last = next
	return &next
}
