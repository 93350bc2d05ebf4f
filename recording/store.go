package recording

import (
	"context"
	"io"
	"time"
)

// Store stores objects. An object is written once, completely, and never changed. Names
// are account/file, both of A-Z a-z 0-9 _ . -
type Store interface {
	// Put durably creates the object from the bytes that write writes. If write or the
	// store fails, no object is left. An error of write is returned wrapped.
	Put(ctx context.Context, name string, write func(io.Writer) error) (size int64, err error)
	// Open returns fault.KindNotFound for an object that does not exist.
	Open(ctx context.Context, name string) (io.ReadSeekCloser, error)
	// Delete returns nil for an object that does not exist.
	Delete(ctx context.Context, name string) error
	// List calls each for every object, in no order, until each returns an error.
	List(ctx context.Context, each func(name string, modified time.Time) error) error
}
