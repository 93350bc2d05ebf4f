package recording

import (
	"context"
	"io"
	"time"
)

// Store keeps objects. An object is written once, whole, and never changed.
// Names are account/file, both of A-Z a-z 0-9 _ . -
type Store interface {
	// Put makes the object from what write writes, durably, or leaves nothing
	// when write or the store fails. An error of write comes back wrapped.
	Put(ctx context.Context, name string, write func(io.Writer) error) (size int64, err error)
	// Open answers fault.NotFound for an object that is not there.
	Open(ctx context.Context, name string) (io.ReadSeekCloser, error)
	// Delete is content when the object is not there.
	Delete(ctx context.Context, name string) error
	// List calls each for every object, in no order, until it fails.
	List(ctx context.Context, each func(name string, modified time.Time) error) error
}
