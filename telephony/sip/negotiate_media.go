package sip

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"trunkline/internal/fault"
	"trunkline/telephony/srtp"
)

// NegotiatedCodec is a codec that both sides agreed on.
type NegotiatedCodec struct {
	Codec
	SendType    uint8 // payload type for packets to the peer
	ReceiveType uint8 // payload type in packets from the peer
}

// NegotiatedMedia is the result of an offer and its answer, from the local side.
type NegotiatedMedia struct {
	// Codecs begins with the codec to send. A peer that accepted several codecs of our offer may send
	// any of them.
	Codecs         []NegotiatedCodec
	TelephoneEvent NegotiatedCodec // telephone-event; its Name is "" when the peer has none
	RemoteAddr     netip.AddrPort  // media address of the peer
	PeerSends      bool            // the peer sends
	PeerReceives   bool            // the peer wants to receive
	Keys           srtp.Keys       // SRTP keys; the zero value is plain RTP
}

// Negotiator has the local side of one leg's offers and answers: media address and codecs. Its methods are
// safe for concurrent use.
type Negotiator struct {
	address netip.AddrPort
	codecs  []Codec

	mu         sync.Mutex
	lastSent   SDP // last description sent
	encryption Encryption
	keys       map[srtp.Suite]srtp.Key // our own
	agreed     struct {                // SRTP that was agreed on
		suite  srtp.Suite // "" for none
		secure bool       // described as RTP/SAVP
	}
}

// NewNegotiator returns the local side of a leg that receives media at address. codecs are in order of
// preference, without telephone-event, which is always added.
func NewNegotiator(address netip.AddrPort, codecs []Codec) *Negotiator {
	return &Negotiator{
		address:  address,
		codecs:   slices.Clone(codecs),
		keys:     map[srtp.Suite]srtp.Key{},
		lastSent: SDP{ID: uint64(rand.Uint32()), Version: uint64(rand.Uint32())},
	}
}

// Offer returns an offer with the given codecs, or with all codecs of n. Codecs keep their payload
// types.
func (n *Negotiator) Offer(codecs ...Codec) *SDP {
	if len(codecs) == 0 {
		codecs = n.codecs
	}
	return n.newSDP(withTelephoneEvents(codecs), SendRecv, n.offerEncryption(), 0, nil)
}

// withTelephoneEvents appends telephone-event for each clock.
func withTelephoneEvents(codecs []Codec) []Codec {
	all := slices.Clone(codecs)
	for _, c := range codecs {
		_, found := findCodec(all, TelephoneEvent(c.Clock))
		if !found {
			all = append(all, TelephoneEvent(c.Clock))
		}
	}
	return all
}

// Answer returns the answer to an offer, with one codec: the first of prefer, then of the offer's
// order, that both sides have. The error is fault.KindUnsupported if there is none.
func (n *Negotiator) Answer(offer *SDP, prefer ...Codec) (*SDP, NegotiatedMedia, error) {
	chosen, ok := n.chooseCodec(offer, prefer)
	if !ok {
		return nil, NegotiatedMedia{}, fault.New(fault.KindUnsupported, "the two sides have no common codec")
	}

	encryption, keys, err := n.answerEncryption(offer)
	if err != nil {
		return nil, NegotiatedMedia{}, err
	}

	agreed := NegotiatedMedia{
		Keys:       keys,
		Codecs:     []NegotiatedCodec{{Codec: chosen, SendType: chosen.PayloadType, ReceiveType: chosen.PayloadType}},
		RemoteAddr: offer.Address, PeerSends: offer.Direction.Sends(), PeerReceives: offer.Direction.Receives(),
	}
	codecs := []Codec{chosen}

	if events, ok := offer.findTelephoneEvent(chosen.Clock); ok {
		agreed.TelephoneEvent = NegotiatedCodec{Codec: events, SendType: events.PayloadType,
			ReceiveType: events.PayloadType}
		codecs = append(codecs, events)
	}

	ours := n.newSDP(codecs, offer.Direction.answerDirection(), encryption, offer.audioIndex, offer.rejectedByLine)
	return ours, agreed, nil
}

// chooseCodec returns the first codec that both sides have: in the order of prefer, then of the offer. It has
// the payload type of the offer.
func (n *Negotiator) chooseCodec(offer *SDP, prefer []Codec) (Codec, bool) {
	for _, wanted := range slices.Concat(prefer, offer.Codecs) {
		ours, known := findCodec(n.codecs, wanted)
		theirs, offered := findCodec(offer.Codecs, wanted)
		if known && offered {
			theirs.Parameters = ours.Parameters
			return theirs, true
		}
	}
	return Codec{}, false
}

// findTelephoneEvent returns the telephone-event with the given clock in Hz, or else any.
func (s *SDP) findTelephoneEvent(clock uint32) (Codec, bool) {
	if c, ok := findCodec(s.Codecs, TelephoneEvent(clock)); ok {
		return c, true
	}
	i := slices.IndexFunc(s.Codecs, Codec.IsTelephoneEvent)
	if i < 0 {
		return Codec{}, false
	}
	return s.Codecs[i], true
}

// AcceptAnswer returns what the answer to an offer of n agrees on. The error is fault.KindUnsupported if they have
// no common codec, or do not agree on encryption.
func (n *Negotiator) AcceptAnswer(offer, answer *SDP) (NegotiatedMedia, error) {
	agreed := NegotiatedMedia{RemoteAddr: answer.Address, PeerSends: answer.Direction.Sends(),
		PeerReceives: answer.Direction.Receives()}
	for _, theirs := range answer.Codecs {
		if ours, ok := findCodec(offer.Codecs, theirs); ok && !theirs.IsTelephoneEvent() {
			agreed.Codecs = append(agreed.Codecs,
				NegotiatedCodec{Codec: ours, SendType: theirs.PayloadType, ReceiveType: ours.PayloadType})
		}
	}

	if len(agreed.Codecs) == 0 {
		return NegotiatedMedia{}, fault.New(fault.KindUnsupported, "the answer has no codec of the offer")
	}

	var err error
	agreed.Keys, err = n.acceptEncryption(offer, answer)
	if err != nil {
		return NegotiatedMedia{}, err
	}

	if theirs, ok := answer.findTelephoneEvent(agreed.Codecs[0].Clock); ok {
		if ours, ok := findCodec(offer.Codecs, theirs); ok {
			agreed.TelephoneEvent = NegotiatedCodec{Codec: ours, SendType: theirs.PayloadType,
				ReceiveType: ours.PayloadType}
		}
	}

	return agreed, nil
}

// newSDP returns the next description. Its version increases when it differs from the last one (RFC
// 3264, section 8).
func (n *Negotiator) newSDP(codecs []Codec, direction Direction, encryption mediaEncryption, audioIndex int,
	rejected []rejectedMedia) *SDP {
	n.mu.Lock()
	defer n.mu.Unlock()

	next := SDP{
		ID: n.lastSent.ID, Version: n.lastSent.Version, Address: n.address, Codecs: codecs,
		Direction: direction, PacketTime: packetTime, Secure: encryption.secure, Crypto: encryption.crypto,
		audioIndex: audioIndex, rejectedByLine: rejected,
	}
	if n.lastSent.Codecs != nil &&
		(direction != n.lastSent.Direction || !slices.Equal(codecs, n.lastSent.Codecs) ||
			!slices.Equal(next.Crypto, n.lastSent.Crypto)) {
		next.Version++
	}

	n.lastSent = next
	return &next
}
