package recording

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"trunkline/internal/fault"
)

// Dir is a Store in a directory, with a folder for each account and a file for each
// object. A file is written under a temporary name in unfinishedDir, synced, and renamed,
// so a file with its final name is complete.
type Dir struct{ root *os.Root }

const (
	unfinishedDir = ".unfinished" // folder of files that are being written
	unfinishedAge = time.Hour     // time since the last write after which the writer is considered crashed
)

// OpenDir opens the store, creates its directory if missing, and removes the files of
// crashed writers.
func OpenDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the recordings' directory: %w", err)
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the recordings' directory: %w", err)
	}

	d := &Dir{root}
	if err := d.RemoveUnfinished(context.Background(), time.Now().Add(-unfinishedAge)); err != nil {
		return nil, errors.Join(err, root.Close())
	}

	return d, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// RemoveUnfinished removes unfinished files that were last written before the time. A
// command or another server may be writing newer ones.
func (d *Dir) RemoveUnfinished(_ context.Context, before time.Time) error {
	err := d.root.Mkdir(unfinishedDir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the folder for unfinished recordings: %w", err)
	}

	entries, err := fs.ReadDir(d.root.FS(), unfinishedDir)
	if err != nil {
		return fmt.Errorf("listing unfinished recordings: %w", err)
	}

	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the properties of an unfinished recording: %w", err)
		}

		if info.ModTime().After(before) {
			continue
		}

		err = d.root.Remove(path.Join(unfinishedDir, entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an unfinished recording: %w", err)
		}
	}

	return nil
}

// Put implements Store.
func (d *Dir) Put(_ context.Context, name string, write func(io.Writer) error) (size int64, err error) {
	tempName := path.Join(unfinishedDir, rand.Text())
	f, err := d.root.OpenFile(tempName, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fileError(err, "creating a recording's file")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(d.root.Remove(tempName)))
		}
	}()

	// The deferred Remove works on an open file, too; an error of Close is only added to
	// the error of write.
	if err := write(f); err != nil {
		return 0, errors.Join(fileError(err, "writing a recording"), f.Close())
	}

	info, err := f.Stat()
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fileError(err, "writing a recording")
	}
	// As late as this: a refused upload leaves no folder.
	if err := d.createFolder(path.Dir(name)); err != nil {
		return 0, err
	}
	if err := d.root.Rename(tempName, name); err != nil {
		return 0, fileError(err, "renaming a recording's file")
	}

	// The rename is durable with its folder.
	return info.Size(), fileError(d.syncFolder(path.Dir(name)), "syncing the account's folder")
}

func (d *Dir) createFolder(folder string) error {
	err := d.root.Mkdir(folder, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return fileError(errors.Join(err, d.syncFolder(".")), "creating the account's folder")
}

func (d *Dir) syncFolder(folder string) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Open implements Store.
func (d *Dir) Open(_ context.Context, name string) (io.ReadSeekCloser, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, fileError(err, "opening a recording's file")
	}
	return f, nil
}

// Delete implements Store.
func (d *Dir) Delete(_ context.Context, name string) error {
	return fileError(ignoreMissing(d.root.Remove(name)), "deleting a recording's file")
}

// List implements Store.
func (d *Dir) List(ctx context.Context, each func(name string, modified time.Time) error) error {
	return fs.WalkDir(d.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted during the listing
		}
		if err != nil {
			return fileError(err, "listing recordings")
		}

		if entry.IsDir() {
			if name == unfinishedDir {
				return fs.SkipDir
			}
			return ctx.Err()
		}

		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fileError(err, "reading the properties of a recording's file")
		}

		return each(name, info.ModTime())
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// fileError returns an error of the file system with a fault kind. It keeps the kind of an
// error that has one.
func fileError(err error, operation string) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return fmt.Errorf("%s: %w", operation, err)
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Error{Kind: fault.KindNotFound, Message: "the recording's file is missing", Cause: err}
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fault.Unavailable(err, retryAfter, "the store of recordings is full")
	}

	return fault.Internal(err, operation+" failed")
}

const retryAfter = 30 * time.Second
