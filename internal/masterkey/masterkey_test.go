package masterkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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

func fileRing(t *testing.T) (*Keyring, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "master.key")
	k := openKeyring(t, Settings{File: file})
	if created, err := k.Create(); err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return k, file
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

func TestTheFileIsMadeOnceAndPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master.key")
	empty := openKeyring(t, Settings{File: file})
	if _, err := empty.Seal([]byte("x")); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("sealed without a key: %v", err)
	}
	if err := empty.Require("0011223344556677"); err == nil {
		t.Error("an empty ring has every key")
	}

	var created sync.Map
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			k, err := Open(Settings{File: file})
			if err == nil {
				var made bool
				made, err = k.Create()
				if made {
					created.Store(i, true)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	count := 0
	created.Range(func(any, any) bool { count++; return true })

	if count != 1 {
		t.Errorf("%d of 4 made the file", count)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	sealed := sealSecret(t, empty, "x") // it follows
	if _, err := openKeyring(t, Settings{File: file}).Unseal(sealed); err != nil {
		t.Error(err)
	}
}

func TestARunningRingFollowsTheFile(t *testing.T) {
	cli, file := fileRing(t)
	server := openKeyring(t, Settings{File: file})
	before := sealSecret(t, server, "x")
	id, err := cli.AddKey()
	if err != nil {
		t.Fatal(err)
	}

	after := sealSecret(t, server, "x")
	if KeyID(after) != id || KeyID(before) == id {
		t.Errorf("sealed under %s, then %s; the new key is %s", KeyID(before), KeyID(after), id)
	}
	if _, err := server.Unseal(before); err != nil {
		t.Error(err)
	}
	if err := cli.RemoveUnused([]string{KeyID(before)}); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeyring(t, Settings{File: file}).Unseal(before); err != nil {
		t.Errorf("a key in use was retired: %v", err)
	}

	if err := cli.RemoveUnused(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeyring(t, Settings{File: file}).Unseal(before); err == nil {
		t.Error("the old key is still in the file")
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, []byte(fileHeader)) {
		t.Errorf("the file's comment was lost: %v", err)
	}
}

func TestALostFileStopsSealingAndNotOpening(t *testing.T) {
	k, file := fileRing(t)
	sealed := sealSecret(t, k, "x")
	for name, lose := range map[string]func() error{
		"emptied": func() error { return os.WriteFile(file, []byte("# nothing\n"), 0o600) },
		"removed": func() error { return os.Remove(file) },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Seal([]byte("x")); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("%s: sealed: %v", name, err)
		}
		if _, err := k.Unseal(sealed); err != nil {
			t.Errorf("%s: not opened: %v", name, err)
		}
	}
}

// store is a database of sealed secrets.
type store struct {
	k       *Keyring
	secrets []string
	fail    error
	late    []string // appears after the next Reseal
}

func (r *store) MasterKeys(context.Context) ([]string, error) {
	var ids []string
	for _, s := range r.secrets {
		ids = append(ids, KeyID(s))
	}
	return ids, nil
}

func (r *store) Reseal(_ context.Context, progress func(done, total int)) error {
	for i, s := range r.secrets {
		if r.fail != nil && i == 1 {
			return r.fail
		}

		secret, err := r.k.Unseal(s)
		if err != nil {
			return err
		}

		r.secrets[i], err = r.k.Seal(secret)
		if err != nil {
			return err
		}

		progress(i+1, len(r.secrets))
	}

	r.secrets, r.late = append(r.secrets, r.late...), nil
	return nil
}

func TestRotateSealsEverythingAndRetiresTheOldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, file := fileRing(t)
		first, err := k.NewestID()
		if err != nil {
			t.Fatal(err)
		}

		r := &store{k: k, secrets: []string{sealSecret(t, k, "a"), sealSecret(t, k, "b")},
			late: []string{sealSecret(t, k, "c")}}
		steps := 0
		got, err := Rotate(t.Context(), k, []SecretStore{r}, func(int, int) { steps++ })
		if err != nil || got.Resumed || got.ID == first {
			t.Fatalf("%+v, %v", got, err)
		}

		if ids, _ := r.MasterKeys(t.Context()); len(ids) != 3 ||
			slices.ContainsFunc(ids, func(id string) bool { return id != got.ID }) {
			t.Errorf("sealed under %v", ids)
		}
		if err := openKeyring(t, Settings{File: file}).Require(first); err == nil {
			t.Error("the old key is still there")
		}
		if steps < 3 {
			t.Errorf("%d steps of progress", steps)
		}
	})
}

func TestABrokenRotationIsFinishedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := fileRing(t)
		r := &store{k: k, secrets: []string{sealSecret(t, k, "a"), sealSecret(t, k, "b")}, fail: errors.New("stopped")}
		broken, err := Rotate(t.Context(), k, []SecretStore{r}, func(int, int) {})
		if !errors.Is(err, r.fail) {
			t.Fatal(err)
		}

		if err := k.Require(KeyID(r.secrets[1])); err != nil {
			t.Fatal("the old key went before all was sealed anew")
		}

		r.fail = nil
		got, err := Rotate(t.Context(), k, []SecretStore{r}, func(int, int) {})
		if err != nil || !got.Resumed || got.ID != broken.ID {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Another rotation adds its key when this one has found all secrets under its own.
func TestARotationLeavesTheKeyOfAllSecretsToTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, file := fileRing(t)
		r := &store{k: k, secrets: []string{sealSecret(t, k, "a")}}
		other := openKeyring(t, Settings{File: file})
		listed := 0
		stores := []SecretStore{&listedStore{r, func() {
			listed++
			if listed < 2 {
				return
			}
			if _, err := other.AddKey(); err != nil {
				t.Error(err)
			}
		}}}

		got, err := Rotate(t.Context(), k, stores, func(int, int) {})
		if err != nil || listed != 2 || KeyID(r.secrets[0]) != got.ID {
			t.Fatalf("%+v, %v, sealed under %s after %d lists", got, err, KeyID(r.secrets[0]), listed)
		}
		if _, err := openKeyring(t, Settings{File: file}).Unseal(r.secrets[0]); err != nil {
			t.Errorf("the secret is lost: %v", err)
		}
	})
}

// listedStore is a store whose secrets' keys are listed before something else happens.
type listedStore struct {
	*store
	then func()
}

func (r *listedStore) MasterKeys(ctx context.Context) ([]string, error) {
	ids, err := r.store.MasterKeys(ctx)
	r.then()
	return ids, err
}

func TestKeysOfASettingAreNotRotatedByUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := hex.EncodeToString(randomKey()), hex.EncodeToString(randomKey())
		k := openKeyring(t, Settings{Value: setting.Secret(one)})
		r := &store{k: k, secrets: []string{sealSecret(t, k, "a")}}
		if _, err := Rotate(t.Context(), k, []SecretStore{r}, func(int, int) {}); !errors.Is(err, errKeysFromSetting) {
			t.Errorf("%v", err)
		}

		r.k = openKeyring(t, Settings{Value: setting.Secret(one + "," + two)})
		if got, err := Rotate(t.Context(), r.k, []SecretStore{r}, func(int, int) {}); err != nil ||
			KeyID(r.secrets[0]) != got.ID {
			t.Errorf("%+v, %v", got, err)
		}
	})
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
