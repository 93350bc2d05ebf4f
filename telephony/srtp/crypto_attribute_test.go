package srtp_test

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/telephony/srtp"
)

func TestAttributes(t *testing.T) {
	const aes = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"
	for value, want := range map[string]fault.Kind{
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + aes:                                 "",
		"999999999 AES_CM_128_HMAC_SHA1_80 inline:" + aes + "|2^20 WSH=64 -X":     "",
		"1 AEAD_AES_128_GCM inline:" + aes[:37] + "w==":                           "",
		"1 AEAD_AES_128_GCM inline:" + aes[:37] + "w":                             "",
		"1 AEAD_AES_256_GCM inline:" + aes + aes[:18] + "w=":                      "",
		"1 AES_CM_128_HMAC_SHA1_32 inline:" + aes:                                 fault.KindUnsupported,
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + aes + "|2^20|1:4":                   fault.KindUnsupported,
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + aes + "|1:4;inline:" + aes + "|2:4": fault.KindUnsupported,
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + aes + " UNENCRYPTED_SRTP":           fault.KindUnsupported,
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + aes + " UNAUTHENTICATED_SRTP":       fault.KindUnsupported,
		"1 AES_CM_128_HMAC_SHA1_80 uri:" + aes:                                    fault.KindUnsupported,
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + aes[:20]:                            fault.KindInvalid,
		"1 AES_CM_128_HMAC_SHA1_80 inline:!!!":                                    fault.KindInvalid,
		"x AES_CM_128_HMAC_SHA1_80 inline:" + aes:                                 fault.KindInvalid,
		"1 AES_CM_128_HMAC_SHA1_80":                                               fault.KindInvalid,
		"":                                                                        fault.KindInvalid,
	} {
		a, err := srtp.ParseAttribute(value)
		if fault.KindOf(err) != want {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
		if err == nil {
			if again, err := srtp.ParseAttribute(a.String()); err != nil || again != a {
				t.Errorf("%s was written as %s", value, a)
			}
			if text := fmt.Sprintf("%v %+v %#v", a.Key, a.Key, a.Key); strings.Contains(text, "secret") ||
				strings.Contains(text, "YS_") {
				t.Errorf("a printed key is %s", text)
			}
		}
	}
}

// FuzzAttribute: each attribute that can be parsed has a key for a context.
func FuzzAttribute(f *testing.F) {
	f.Add("1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20 WSH=64")
	f.Fuzz(func(t *testing.T, value string) {
		a, err := srtp.ParseAttribute(value)
		if err != nil {
			return
		}

		if _, err := srtp.NewReceiver(a.Key); err != nil {
			t.Error(err)
		}
	})
}
