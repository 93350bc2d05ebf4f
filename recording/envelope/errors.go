package envelope

import (
	"errors"
	"fmt"
)

// Errors of sealed recordings. Every error of this package matches one of them with
// errors.Is, or an error of the caller's reader or writer.
var (
	ErrFormat    = errors.New("not a sealed recording")
	ErrVersion   = errors.New("sealed in an unsupported version of the format")
	ErrHeader    = errors.New("the header was altered")
	ErrAccount   = errors.New("the recording belongs to another account")
	ErrRecording = errors.New("the header belongs to another recording")
	ErrSalt      = errors.New("not the salt this recording was sealed under")
	ErrKey       = errors.New("not the key this recording was sealed under, or the header was rewritten")
	ErrTruncated = errors.New("the recording was cut short")
	ErrTrailing  = errors.New("data follows the end of the recording")
	ErrAltered   = errors.New("altered, out of place or cut short")
	ErrParams    = errors.New("cannot be sealed")
)

// ChunkError reports the chunk that was refused. All audio before that chunk is authentic;
// none of it or after it was released.
type ChunkError struct {
	Index uint64 // from 0
	Err   error  // ErrAltered, ErrTruncated or ErrTrailing
}

func (e *ChunkError) Error() string { return fmt.Sprintf("chunk %d: %v", e.Index, e.Err) }

func (e *ChunkError) Unwrap() error { return e.Err }
