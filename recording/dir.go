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

// Dir is a Store in a directory: a folder for each account, a file for each object. A
// file with its final name is complete: it is written under another name, synced, and
// renamed.
type Dir struct{ root *os.Root }

const (
	unfinished    = ".unfinished" // the folder of files being written
	unfinishedAge = time.Hour     // without a write, after which their writer counts as crashed
)

// OpenDir opens the store, creates its directory if missing, and removes the files of
// crashed writers.
func OpenDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the recordings' directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the recordings' directory: %w", err)
	}
	d := &Dir{root}
	if err := d.Tidy(context.Background(), time.Now().Add(-unfinishedAge)); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Tidy removes unfinished files, except those written to after before: a command or
// another server may be writing them.
func (d *Dir) Tidy(_ context.Context, before time.Time) error {
	if err := d.root.Mkdir(unfinished, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a folder for files being written: %w", err)
	}
	entries, err := fs.ReadDir(d.root.FS(), unfinished)
	if err != nil {
		return fmt.Errorf("listing unfinished recordings: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking at an unfinished recording: %w", err)
		}
		if info.ModTime().After(before) {
			continue
		}
		if err := d.root.Remove(path.Join(unfinished, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an unfinished recording: %w", err)
		}
	}
	return nil
}

// Put implements Store.
func (d *Dir) Put(_ context.Context, name string, write func(io.Writer) error) (size int64, err error) {
	beside := path.Join(unfinished, rand.Text())
	f, err := d.root.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, dirFault(err, "making a recording's file")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(d.root.Remove(beside)))
		}
	}()
	// The deferred Remove works on an open file too; Close here only adds to
	// an error there already is.
	if err := write(f); err != nil {
		return 0, errors.Join(dirFault(err, "writing a recording"), f.Close())
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, dirFault(err, "writing a recording")
	}
	if err := d.makeFolder(path.Dir(name)); err != nil {
		return 0, err
	}
	if err := d.root.Rename(beside, name); err != nil {
		return 0, dirFault(err, "naming a recording's file")
	}
	return info.Size(), dirFault(d.sync(path.Dir(name)), "syncing the account's folder")
}

func (d *Dir) makeFolder(folder string) error {
	err := d.root.Mkdir(folder, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return dirFault(errors.Join(err, d.sync(".")), "making the account's folder")
}

func (d *Dir) sync(folder string) error {
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
		return nil, dirFault(err, "opening a recording's file")
	}
	return f, nil
}

// Delete implements Store.
func (d *Dir) Delete(_ context.Context, name string) error {
	return dirFault(ignoreMissing(d.root.Remove(name)), "deleting a recording's file")
}

// List implements Store.
func (d *Dir) List(ctx context.Context, each func(name string, modified time.Time) error) error {
	return fs.WalkDir(d.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted during the listing
		}
		if err != nil {
			return dirFault(err, "listing recordings")
		}
		if entry.IsDir() {
			if name == unfinished {
				return fs.SkipDir
			}
			return ctx.Err()
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return dirFault(err, "looking at a recording's file")
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

// dirFault returns a file system's error with its kind; an error that has a kind keeps
// it.
func dirFault(err error, doing string) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Error{Kind: fault.KindNotFound, Message: "the recording's file is not there", Cause: err}
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fault.Unavailable(err, retryAfter, "the store of recordings is full")
	}
	return fault.Internal(err, doing+" failed")
}

const retryAfter = 30 * time.Second
