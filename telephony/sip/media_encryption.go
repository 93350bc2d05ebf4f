package sip

import (
	"trunkline/internal/fault"
	"trunkline/telephony/srtp"
)

// Encryption decides whether the media of legs is encrypted with SRTP. The keys are exchanged in
// session descriptions (SDES, RFC 4568).
type Encryption string

// The values of Encryption. The zero value is EncryptionOff.
const (
	EncryptionOff Encryption = "off"
	// EncryptionOptional accepts SRTP and plain RTP, and offers SRTP in a description of plain RTP.
	EncryptionOptional Encryption = "optional"
	// EncryptionRequired accepts and offers SRTP only.
	EncryptionRequired Encryption = "required"
)

// Encryptions returns the names of the values.
func Encryptions() []string {
	return []string{string(EncryptionOff), string(EncryptionOptional), string(EncryptionRequired)}
}

// ForTransport returns the encryption of a leg whose signalling uses the transport. The signalling contains the
// keys, so SRTP requires TLS: without it EncryptionOptional becomes EncryptionOff, and
// EncryptionRequired returns fault.KindUnsupported.
func (e Encryption) ForTransport(transport string) (Encryption, error) {
	switch {
	case transport == transportTLS:
		return e, nil
	case e == EncryptionRequired:
		return e, fault.New(fault.KindUnsupported, "encrypted media requires TLS")
	}
	return EncryptionOff, nil
}

// SetEncryption sets the encryption of the leg. It must be called before the first offer or answer.
func (n *Negotiator) SetEncryption(e Encryption) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.encryption = e
}

// suiteKey returns the leg's own key of a suite, which stays the same. The caller holds mu.
func (n *Negotiator) suiteKey(suite srtp.Suite) srtp.Key {
	k, found := n.keys[suite]
	if !found {
		k = srtp.NewKey(suite)
		n.keys[suite] = k
	}
	return k
}

// mediaEncryption is the encryption of one description.
type mediaEncryption struct {
	secure bool             // described as SRTP (RTP/SAVP)
	crypto []srtp.Attribute // none: plain RTP
}

// offerEncryption returns the encryption of an offer. Once SRTP is agreed it stays: an offer then has the agreed
// suite and profile only.
func (n *Negotiator) offerEncryption() mediaEncryption {
	n.mu.Lock()
	defer n.mu.Unlock()

	suites := srtp.Suites()
	offer := mediaEncryption{secure: n.encryption == EncryptionRequired}
	switch {
	case n.agreed.suite != "":
		suites, offer.secure = []srtp.Suite{n.agreed.suite}, n.agreed.secure
	case n.encryption != EncryptionOptional && n.encryption != EncryptionRequired:
		return mediaEncryption{}
	}

	for i, suite := range suites {
		offer.crypto = append(offer.crypto, srtp.Attribute{Tag: i + 1, Key: n.suiteKey(suite)})
	}

	return offer
}

// answerEncryption returns the encryption of the answer to an offer, and the keys. The error is
// fault.KindUnsupported if the two sides cannot agree.
func (n *Negotiator) answerEncryption(offer *SDP) (mediaEncryption, srtp.Keys, error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	disabled := n.encryption != EncryptionOptional && n.encryption != EncryptionRequired
	switch {
	case len(offer.Crypto) > 0 && !disabled:
		theirs := offer.Crypto[0]
		ours := n.suiteKey(theirs.Key.Suite())
		n.agreed.suite, n.agreed.secure = theirs.Key.Suite(), offer.Secure
		return mediaEncryption{secure: offer.Secure, crypto: []srtp.Attribute{{Tag: theirs.Tag, Key: ours}}},
			srtp.Keys{Send: ours, Receive: theirs.Key}, nil
	case offer.Secure:
		return mediaEncryption{}, srtp.Keys{},
			fault.New(fault.KindUnsupported, "encrypted media is not available on this leg")
	}

	return mediaEncryption{}, srtp.Keys{}, n.checkPlainAllowed()
}

// acceptEncryption returns the keys that an answer to our offer agrees on. The error is fault.KindUnsupported if
// the answer does not fit the offer.
func (n *Negotiator) acceptEncryption(offer, answer *SDP) (srtp.Keys, error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	for _, theirs := range answer.Crypto {
		for _, ours := range offer.Crypto {
			if ours.Tag == theirs.Tag && ours.Key.Suite() == theirs.Key.Suite() {
				n.agreed.suite, n.agreed.secure = ours.Key.Suite(), offer.Secure
				return srtp.Keys{Send: ours.Key, Receive: theirs.Key}, nil
			}
		}
	}

	if answer.Secure || offer.Secure {
		return srtp.Keys{}, fault.New(fault.KindUnsupported, "the answer has no key for its encrypted media")
	}

	return srtp.Keys{}, n.checkPlainAllowed()
}

// checkPlainAllowed returns an error if the leg must not have plain media: encryption is required, or was agreed
// before. The caller holds mu.
func (n *Negotiator) checkPlainAllowed() error {
	if n.encryption == EncryptionRequired || n.agreed.suite != "" {
		return fault.New(fault.KindUnsupported, "this leg's media must be encrypted")
	}
	return nil
}
