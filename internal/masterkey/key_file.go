package masterkey

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"trunkline/internal/atomicfile"
)

const fileHeader = "# Trunkline master keys, one a line. The last one seals, the others only open.\n" +
	"# Without this file the account keys in the database, and every recording sealed\n" +
	"# under them, are lost. Keep a copy somewhere else.\n"

var errKeysFromSetting = errors.New("the master keys are a setting, not a file: add the new key at the end of " +
	"TRUNKLINE_MASTER_KEY, restart, and rotate again")

// Create creates the key file with a first key if there is none. Call it after every
// store has checked (Require) that no secret is sealed under a missing key.
func (k *Keyring) Create() (created bool, err error) {
	if k.file == "" {
		return false, nil
	}

	err = k.editFile(func(lines []string) ([]string, error) {
		// An empty file is not nil: it has one empty line, and is left for readFile to refuse.
		created = lines == nil
		if !created {
			return lines, nil
		}
		return appendNewKey([]string{strings.TrimSuffix(fileHeader, "\n")})
	})

	return created, err
}

// AddKey adds a key to the file; it seals from now on.
func (k *Keyring) AddKey() (id string, err error) {
	if k.file == "" {
		return "", errKeysFromSetting
	}
	if err := k.editFile(appendNewKey); err != nil {
		return "", err
	}
	return k.NewestID()
}

// RemoveUnused removes every key from the file except the newest and those in use.
func (k *Keyring) RemoveUnused(inUse []string) error {
	if k.file == "" {
		return nil
	}

	return k.editFile(func(lines []string) ([]string, error) {
		// Of these lines: before the lock was held another process may have added a key.
		keys, err := parseLines(lines)
		if err != nil {
			return nil, fmt.Errorf("key file %s: %w", k.file, err)
		}

		newest := keys.newest().id
		return slices.DeleteFunc(lines, func(line string) bool {
			raw, err := decodeKey(strings.TrimSpace(line))
			if err != nil {
				return false // a comment
			}
			id := fingerprint(raw)
			return id != newest && !slices.Contains(inUse, id)
		}), nil
	})
}

func appendNewKey(lines []string) ([]string, error) {
	raw := make([]byte, keySize)
	defer clear(raw)
	_, err := rand.Read(raw)
	if err != nil {
		return nil, fmt.Errorf("making a master key: %w", err)
	}
	return append(lines, base64.StdEncoding.EncodeToString(raw)), nil
}

// editFile rewrites the file's lines (nil: there is no file) while no other
// process does, and reads the keys again.
func (k *Keyring) editFile(edit func(lines []string) ([]string, error)) error {
	// The folder, since the file is replaced by another one, on which a lock would not be held.
	unlock, err := lockFolder(filepath.Dir(k.file))
	if err != nil {
		return err
	}
	defer unlock()

	lines, err := readLines(k.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	oldContent := strings.Join(lines, "\n")
	lines, err = edit(lines)
	if err != nil {
		return err
	}

	newContent := strings.Join(lines, "\n")
	if newContent != oldContent {
		if err := atomicfile.WriteBytes(k.file, 0o600, []byte(newContent+"\n")); err != nil {
			return fmt.Errorf("writing the key file: %w", err)
		}
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	return k.reloadIfChanged()
}

func readLines(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	defer clear(data)
	return strings.Split(string(bytes.TrimRight(data, "\n")), "\n"), nil
}

func readFile(file string) (keyList, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}

	keys, err := parseLines(lines)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", file, err)
	}

	return keys, nil
}

// parseLines reads the keys of a file's lines.
func parseLines(lines []string) (keyList, error) {
	var texts []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			texts = append(texts, line)
		}
	}
	return parseKeys(texts)
}

// lockFolder waits until no other process changes a file of the folder.
func lockFolder(folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the key file's folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the key file's folder: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing unlocks; it was only read
}
