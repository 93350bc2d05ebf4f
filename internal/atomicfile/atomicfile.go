// Package atomicfile replaces files atomically.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write creates or replaces a file with what write writes. After an error or a crash, of the
// process or the machine, the file is as before or complete.
func Write(name string, mode fs.FileMode, write func(io.Writer) error) error {
	dir, base := filepath.Split(name)
	f, err := os.CreateTemp(dir, "."+base+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}

	// Synced before it has its name: else a crash could leave the new name with an empty file.
	err = errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}

	return syncDir(dir)
}

// WriteBytes creates or replaces a file.
func WriteBytes(name string, mode fs.FileMode, content []byte) error {
	return Write(name, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	f, err := os.Open(filepath.Clean(dir)) // "" is "."
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
