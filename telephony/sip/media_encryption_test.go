package sip

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/telephony/srtp"
)

// described is a session description with a profile and crypto attributes.
func described(t *testing.T, profile string, keys ...srtp.Attribute) *SDP {
	t.Helper()
	body := fmt.Sprintf(
		"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/%s 0\r\na=crypto:1 F8_128_HMAC_SHA1_80 inline:abcd\r\n",
		profile)

	for _, k := range keys {
		body += "a=crypto:" + k.String() + "\r\n"
	}

	s, err := ParseSDP([]byte(body))
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func TestWhatEncryptionIsAgreedOn(t *testing.T) {
	theirs := srtp.Attribute{Tag: 7, Key: srtp.NewKey(srtp.AES128GCM)}
	second := srtp.Attribute{Tag: 8, Key: srtp.NewKey(srtp.AES128CM)}
	for name, c := range map[string]struct {
		encryption Encryption
		transport  string
		offer      *SDP
		want       string // profile, "refused", or "plain"
	}{
		"off, plain":              {EncryptionOff, "TLS", described(t, "AVP"), "plain"},
		"off, a key beside plain": {EncryptionOff, "TLS", described(t, "AVP", theirs), "plain"},
		"off, SRTP":               {EncryptionOff, "TLS", described(t, "SAVP", theirs), "refused"},
		"unset, SRTP":             {"", "TLS", described(t, "SAVP", theirs), "refused"},
		"optional, plain":         {EncryptionOptional, "TLS", described(t, "AVP"), "plain"},
		"optional, a key beside plain": {EncryptionOptional, "TLS", described(t, "AVP", theirs, second),
			"RTP/AVP"},
		"optional, SRTP": {EncryptionOptional, "TLS", described(t, "SAVP", theirs, second),
			"RTP/SAVP"},
		"optional, SRTP of unknown suites":  {EncryptionOptional, "TLS", described(t, "SAVP"), "refused"},
		"optional without TLS, plain":       {EncryptionOptional, "UDP", described(t, "AVP"), "plain"},
		"optional without TLS, a key":       {EncryptionOptional, "UDP", described(t, "AVP", theirs), "plain"},
		"optional without TLS, SRTP":        {EncryptionOptional, "TCP", described(t, "SAVP", theirs), "refused"},
		"required, plain":                   {EncryptionRequired, "TLS", described(t, "AVP"), "refused"},
		"required, a key beside plain":      {EncryptionRequired, "TLS", described(t, "AVP", theirs), "RTP/AVP"},
		"required, SRTP":                    {EncryptionRequired, "TLS", described(t, "SAVP", theirs), "RTP/SAVP"},
		"required without TLS, SRTP":        {EncryptionRequired, "UDP", described(t, "SAVP", theirs), "refused"},
		"required without TLS, plain":       {EncryptionRequired, "UDP", described(t, "AVP"), "refused"},
		"required over TCP, a key and more": {EncryptionRequired, "TCP", described(t, "AVP", theirs), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			allowed, err := c.encryption.ForTransport(c.transport)
			if err != nil {
				if c.want != "refused" || fault.KindOf(err) != fault.KindUnsupported {
					t.Error(err)
				}
				return
			}

			local := NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), AllCodecs())
			local.SetEncryption(allowed)
			answer, agreed, err := local.Answer(c.offer)

			if c.want == "refused" {
				if fault.KindOf(err) != fault.KindUnsupported {
					t.Errorf("got %v", err)
				}
				return
			}

			if err != nil {
				t.Fatal(err)
			}

			body, err := answer.Bytes()
			if err != nil {
				t.Fatal(err)
			}

			if c.want == "plain" {
				if agreed.Keys != (srtp.Keys{}) || strings.Contains(string(body), "crypto") ||
					!strings.Contains(string(body), "RTP/AVP ") {
					t.Errorf("answered %s", body)
				}
				return
			}

			if agreed.Keys.Receive != theirs.Key || agreed.Keys.Send == theirs.Key ||
				agreed.Keys.Send.Suite() != theirs.Key.Suite() {
				t.Errorf("agreed on %v", agreed.Keys)
			}
			if !strings.Contains(string(body), c.want+" ") ||
				strings.Count(string(body), "a=crypto:7 AEAD_AES_128_GCM inline:") != 1 {
				t.Errorf("answered %s", body)
			}

			// A later offer may change the peer's key, but not end the encryption.
			again, changed, err := local.Answer(
				described(t, map[bool]string{true: "SAVP", false: "AVP"}[c.offer.Secure],
					srtp.Attribute{Tag: 7, Key: srtp.NewKey(srtp.AES128GCM)}))
			if err != nil || changed.Keys.Send != agreed.Keys.Send || changed.Keys.Receive == agreed.Keys.Receive ||
				!slices.Equal(again.Crypto, answer.Crypto) {
				t.Errorf("a new key of the peer: %v", err)
			}

			if _, _, err := local.Answer(described(t, "AVP")); fault.KindOf(err) != fault.KindUnsupported {
				t.Errorf("an offer of plain media got %v", err)
			}
			if offer := local.Offer(); offer.Secure != c.offer.Secure || len(offer.Crypto) != 1 ||
				offer.Crypto[0].Key != agreed.Keys.Send {
				t.Errorf("our next offer is %+v", offer)
			}
		})
	}
}

func TestOurOfferOfEncryption(t *testing.T) {
	for _, c := range []struct {
		encryption Encryption
		answer     string // profile; "" for a key without a tag of ours
		keys       bool
		want       string
	}{
		{EncryptionOff, "AVP", false, "plain"},
		{EncryptionOptional, "AVP", false, "plain"},
		{EncryptionOptional, "AVP", true, "keys"},
		{EncryptionRequired, "SAVP", true, "keys"},
		{EncryptionRequired, "SAVP", false, "refused"},
		{EncryptionRequired, "AVP", false, "refused"},
		{EncryptionOff, "SAVP", true, "refused"},
	} {
		local := NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), AllCodecs())
		local.SetEncryption(c.encryption)
		offer := local.Offer()
		body, err := offer.Bytes()
		if err != nil {
			t.Fatal(err)
		}

		offered := strings.Count(string(body), "a=crypto:")
		if want := map[Encryption]int{EncryptionOff: 0, EncryptionOptional: 3,
			EncryptionRequired: 3}[c.encryption]; offered != want ||
			strings.Contains(string(body), "RTP/SAVP") != (c.encryption == EncryptionRequired) {
			t.Errorf("%s offered %s", c.encryption, body)
		}

		var keys []srtp.Attribute
		if c.keys {
			keys = []srtp.Attribute{{Tag: 99, Key: srtp.NewKey(srtp.AES128CM)},
				{Tag: 2, Key: srtp.NewKey(srtp.AES256GCM)}}
		}

		agreed, err := local.AcceptAnswer(offer, described(t, c.answer, keys...))
		switch c.want {
		case "refused":
			if fault.KindOf(err) != fault.KindUnsupported {
				t.Errorf("%+v: %v", c, err)
			}
		case "plain":
			if err != nil || agreed.Keys != (srtp.Keys{}) {
				t.Errorf("%+v: %v %v", c, agreed.Keys, err)
			}
		default:
			if err != nil || agreed.Keys.Receive != keys[1].Key || agreed.Keys.Send != offer.Crypto[1].Key {
				t.Errorf("%+v: %v %v", c, agreed.Keys, err)
			}
		}
	}
}
