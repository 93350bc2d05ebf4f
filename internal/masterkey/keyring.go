package masterkey

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// Keyring holds the service's master keys. It is safe for concurrent use.
type Keyring struct {
	file string // empty: the keys are fixed

	mu    sync.Mutex
	keys  keyList
	stamp fileStamp // the file's when keys was read from it
}

// Open reads the keys. A file that does not exist yet gives an empty ring, which cannot
// seal or unseal: see Create.
func Open(settings Settings) (*Keyring, error) {
	if err := setting.Validate("", settings); err != nil {
		return nil, err
	}

	if settings.Value != "" {
		keys, err := parseKeys(splitKeys(string(settings.Value)))
		if err != nil {
			return nil, err
		}
		return &Keyring{keys: keys}, nil
	}

	if settings.File == "" {
		return nil, errors.New("master key: neither a key nor a file is set")
	}

	k := &Keyring{file: settings.File}
	err := k.reloadIfChanged()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	return k, nil
}

// FromFile reports whether the keys are in a file, which Create, AddKey and
// RemoveUnused can change.
func (k *Keyring) FromFile() bool { return k.file != "" }

// Require returns an error unless the ring has every key in ids: secrets sealed under a
// missing key could not be unsealed. The stores call it when they start.
func (k *Keyring) Require(ids ...string) error {
	k.mu.Lock()
	defer k.mu.Unlock()

	for _, id := range ids {
		if _, ok := k.keys.find(id); !ok {
			return fault.Permanent(
				fmt.Errorf("secrets in the database are sealed under master key %s, which is not there: "+
					"set TRUNKLINE_MASTER_KEY or bring back its key file", id))
		}
	}

	return nil
}

// NewestID returns the id of the key that seals.
func (k *Keyring) NewestID() (string, error) {
	keys, err := k.current()
	if err != nil {
		return "", err
	}
	return keys.newest().id, nil
}

// Seal seals a secret for one location: table, account, version. Unseal needs every part
// of the same location.
func (k *Keyring) Seal(secret []byte, location ...string) (string, error) {
	keys, err := k.current()
	if err != nil {
		return "", err
	}
	return keys.newest().encrypt(secret, location), nil
}

// Unseal opens a secret that Seal sealed for the same location.
func (k *Keyring) Unseal(sealed string, location ...string) ([]byte, error) {
	id := KeyID(sealed)
	key, ok := k.find(id)
	if !ok {
		return nil, fault.Internal(fmt.Errorf("master key %q is not there", id), "a sealed secret cannot be opened")
	}

	secret, err := key.decrypt(sealed, location)
	if err != nil {
		return nil, fault.Internal(err, "a sealed secret cannot be opened")
	}

	return secret, nil
}

// find returns a key. It checks the file again only for an unknown key: one that was read
// stays usable until Seal or NewestID reads a changed file.
func (k *Keyring) find(id string) (masterKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.keys.find(id)
	if !ok && k.file != "" && k.reloadIfChanged() == nil {
		found, ok = k.keys.find(id)
	}
	return found, ok
}

// current returns the keys of the file's current content.
func (k *Keyring) current() (keyList, error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.file != "" {
		if err := k.reloadIfChanged(); err != nil {
			return nil, fault.Unavailable(err, retryAfter, "the master key is not available")
		}
	}

	if len(k.keys) == 0 {
		return nil, fault.Unavailable(nil, retryAfter, "there is no master key")
	}

	return k.keys, nil
}

const retryAfter = 5 * time.Second

// fileStamp changes whenever the file is replaced.
type fileStamp struct {
	time time.Time
	size int64
	info os.FileInfo
}

func (s fileStamp) matches(info os.FileInfo) bool {
	return s.info != nil && s.size == info.Size() && s.time.Equal(info.ModTime()) && os.SameFile(s.info, info)
}

func (k *Keyring) reloadIfChanged() error {
	// Before the file is read: if it is replaced in between, the next call reads it once more.
	info, err := os.Stat(k.file)
	if err != nil {
		return fmt.Errorf("looking at the key file: %w", err)
	}

	if k.stamp.matches(info) {
		return nil
	}

	keys, err := readFile(k.file)
	if err != nil {
		return err
	}

	k.keys, k.stamp = keys, fileStamp{info.ModTime(), info.Size(), info}
	return nil
}
