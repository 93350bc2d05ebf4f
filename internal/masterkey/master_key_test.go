package masterkey

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"trunkline/internal/setting"
)

func TestAKeyMayBeWrittenInHexOrBase64(t *testing.T) {
	raw := randomKey()
	raw[0], raw[1] = 0xfb, 0xff // differ between the two alphabets of base64
	first := openKeyring(t, Settings{Value: setting.Secret(hex.EncodeToString(raw))})
	sealed := sealSecret(t, first, "x")

	for _, text := range []string{
		strings.ToUpper(hex.EncodeToString(raw)), base64.StdEncoding.EncodeToString(raw),
		base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw),
		base64.RawURLEncoding.EncodeToString(raw),
	} {
		if _, err := openKeyring(t, Settings{Value: setting.Secret(" " + text + " ")}).Unseal(sealed); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestBadKeysAreRefusedWithoutShowingThem(t *testing.T) {
	good := hex.EncodeToString(randomKey())
	for _, value := range []string{
		"short-secret", good[:62], good + "00", good + ",", "," + good, good + ",short-secret",
		strings.Repeat("00", 32), strings.Repeat("QUFB", 10) + "QUE=",
	} {
		_, err := Open(Settings{Value: setting.Secret(value)})
		if err == nil {
			t.Errorf("%q was accepted", value)
		} else if strings.Contains(err.Error(), "short-secret") || strings.Contains(err.Error(), good[:20]) {
			t.Errorf("the error shows the key: %v", err)
		}
	}

	if _, err := Open(Settings{}); err == nil {
		t.Error("no configuration was accepted")
	}
}
