package masterkey

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"trunkline/internal/setting"
)

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
		if err != nil || got.Resumed || got.KeyID == first {
			t.Fatalf("%+v, %v", got, err)
		}

		if ids, _ := r.MasterKeys(t.Context()); len(ids) != 3 ||
			slices.ContainsFunc(ids, func(id string) bool { return id != got.KeyID }) {
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
		if err != nil || !got.Resumed || got.KeyID != broken.KeyID {
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
		if err != nil || listed != 2 || KeyID(r.secrets[0]) != got.KeyID {
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
			KeyID(r.secrets[0]) != got.KeyID {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
