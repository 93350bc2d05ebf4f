package masterkey

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

func randomKey() []byte {
	raw := make([]byte, keySize)
	rand.Read(raw)
	return raw
}

func openKeyring(t *testing.T, cfg Settings) *Keyring {
	t.Helper()
	k, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealSecret(t *testing.T, k *Keyring, secret string, place ...string) string {
	t.Helper()
	sealed, err := k.Seal([]byte(secret), place...)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestASecretOpensOnlyInItsPlace(t *testing.T) {
	k := openKeyring(t, Settings{Value: setting.Secret(hex.EncodeToString(randomKey()))})
	sealed := sealSecret(t, k, "s3cret", "keys", "acme", "1")
	if strings.Contains(sealed, "s3cret") {
		t.Fatal("not sealed")
	}
	if got, err := k.Unseal(sealed, "keys", "acme", "1"); err != nil || string(got) != "s3cret" {
		t.Fatalf("%q, %v", got, err)
	}

	for _, place := range [][]string{nil, {"keys", "acme"}, {"keys", "acme", "2"}, {"keys", "acme1", ""},
		{"keysacme", "1"}, {"keys", "acme", "1", ""}} {
		if _, err := k.Unseal(sealed, place...); fault.KindOf(err) != fault.KindInternal {
			t.Errorf("opened at %q: %v", place, err)
		}
	}
}

func TestAnAlteredSecretIsRefused(t *testing.T) {
	k := openKeyring(t, Settings{Value: setting.Secret(hex.EncodeToString(randomKey()))})
	sealed := sealSecret(t, k, "s3cret", "p")
	for i := range sealed {
		bad := []byte(sealed)
		bad[i]++
		if got, err := k.Unseal(string(bad), "p"); err == nil {
			t.Errorf("byte %d altered: opened as %q", i, got)
		}
	}

	for i := range sealed {
		if _, err := k.Unseal(sealed[:i], "p"); err == nil {
			t.Errorf("cut to %d: opened", i)
		}
	}
}

func TestTheLastKeySealsAndAllOpen(t *testing.T) {
	one, two := hex.EncodeToString(randomKey()), hex.EncodeToString(randomKey())
	old := sealSecret(t, openKeyring(t, Settings{Value: setting.Secret(one)}), "x")
	both := openKeyring(t, Settings{Value: setting.Secret(one + "," + two)})
	if _, err := both.Unseal(old); err != nil {
		t.Error(err)
	}

	fresh := sealSecret(t, both, "x")
	if _, err := openKeyring(t, Settings{Value: setting.Secret(two)}).Unseal(fresh); err != nil {
		t.Error("the last key did not seal")
	}
	if err := both.Require(KeyID(old), KeyID(fresh)); err != nil {
		t.Error(err)
	}
	if err := openKeyring(t, Settings{Value: setting.Secret(two)}).Require(KeyID(old)); err == nil {
		t.Error("a missing key was not missed")
	}
}

func FuzzUnseal(f *testing.F) {
	k, err := Open(Settings{Value: setting.Secret(strings.Repeat("0123456789abcdef", 4))})
	if err != nil {
		f.Fatal(err)
	}

	good, err := k.Seal([]byte("x"))
	if err != nil {
		f.Fatal(err)
	}

	f.Add(good)
	f.Add("mk1.")
	f.Fuzz(func(t *testing.T, sealed string) {
		if secret, err := k.Unseal(sealed); err == nil && string(secret) != "x" {
			t.Fatalf("%q opened as %q", sealed, secret)
		}
	})
}
