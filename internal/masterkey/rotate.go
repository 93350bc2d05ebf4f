package masterkey

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// SecretStore keeps sealed secrets in a database.
type SecretStore interface {
	// MasterKeys returns the ids of the keys that the store's secrets need.
	MasterKeys(ctx context.Context) ([]string, error)
	// Reseal seals under the newest key every secret that is sealed under another one. It
	// may be interrupted and repeated at any time.
	Reseal(ctx context.Context, progress func(done, total int)) error
}

// Rotation is the result of Rotate.
type Rotation struct {
	KeyID   string // id of the key that now seals everything
	Resumed bool   // an unfinished rotation was finished; no key was created
}

// commitWait is longer than a running server takes from sealing a secret to committing it:
// after it, a server that read the file just before its change has committed.
const commitWait = 2 * time.Second

// maxResealRounds bounds how often Rotate starts over because of a secret sealed late.
const maxResealRounds = 5

// Rotate creates the next master key, seals every secret of the stores under it while
// servers run, and then removes the old keys from the file. Keys from a setting are
// rotated by adding one to the setting: then Rotate only seals the secrets under it. It
// first finishes an interrupted rotation.
func Rotate(ctx context.Context, k *Keyring, stores []SecretStore, progress func(done, total int)) (Rotation, error) {
	newest, err := k.NewestID()
	if err != nil {
		return Rotation{}, err
	}

	old, err := oldKeysInUse(ctx, newest, stores)
	if err != nil {
		return Rotation{}, err
	}

	result := Rotation{KeyID: newest, Resumed: len(old) > 0}
	if !result.Resumed {
		// Nothing is under an old key, and a new one can only be added to the setting.
		if !k.FromFile() {
			return Rotation{}, errKeysFromSetting
		}

		result.KeyID, err = k.AddKey()
		if err != nil {
			return Rotation{}, err
		}
	}

	for range maxResealRounds {
		for _, store := range stores {
			if err := store.Reseal(ctx, progress); err != nil {
				return result, fmt.Errorf("sealing under master key %s: %w", result.KeyID, err)
			}
		}

		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(commitWait):
		}

		old, err = oldKeysInUse(ctx, result.KeyID, stores)
		if err != nil {
			return result, err
		}

		if len(old) == 0 {
			// Another rotation may have added a newer key meanwhile: all secrets are under this one.
			return result, k.RemoveUnused([]string{result.KeyID})
		}
	}

	return result, fmt.Errorf("secrets are still being sealed under master keys %v: is a server running "+
		"that does not see the new key file?", old)
}

// oldKeysInUse lists the keys in use besides newest.
func oldKeysInUse(ctx context.Context, newest string, stores []SecretStore) ([]string, error) {
	var ids []string
	for _, store := range stores {
		used, err := store.MasterKeys(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the master keys in use: %w", err)
		}
		ids = append(ids, used...)
	}

	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == newest }), nil
}
