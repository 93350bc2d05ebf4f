package envelope

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Want is whose recording, and which, is expected; an empty field expects
// nothing.
type Want struct{ AccountID, RecordingID string }

// RootOf finds the root that a recording says it was sealed under. It is called
// once, with a header that is not proven yet; the root is wiped after use.
type RootOf func(*Header) (*Root, error)

// unlock checks a header and returns its recording's data key.
func (h *Header) unlock(want Want, rootOf RootOf) (*[keySize]byte, error) {
	if want.AccountID != "" && want.AccountID != h.AccountID {
		return nil, ErrAccount
	}
	if want.RecordingID != "" && want.RecordingID != h.RecordingID {
		return nil, ErrRecording
	}
	root, err := rootOf(h)
	if err != nil {
		return nil, err
	}
	defer root.Wipe()
	return h.unwrap(root)
}

func (h *Header) opener(want Want, rootOf RootOf) (*opener, error) {
	dek, err := h.unlock(want, rootOf)
	if err != nil {
		return nil, err
	}
	defer clear(dek[:])
	chunks, err := h.Suite.chunks(dek)
	if err != nil {
		return nil, err
	}
	return &opener{chunks, newPlace(h.coreDigest())}, nil
}

// Open reads a sealed recording from src to its end and writes its audio to
// dst, each chunk when it is proven. That the recording is complete is known
// only when err is nil: before that, dst holds an authentic beginning.
func Open(dst io.Writer, src io.Reader, want Want, rootOf RootOf) (h *Header, size int64, err error) {
	h, err = Inspect(src)
	if err != nil {
		return nil, 0, err
	}
	o, err := h.opener(want, rootOf)
	if err != nil {
		return nil, 0, err
	}
	size, err = o.stream(dst, src)
	return h, size, err
}

func (o *opener) stream(dst io.Writer, src io.Reader) (size int64, err error) {
	full := ChunkSize + o.overhead()
	ahead := bufio.NewReaderSize(src, full+1)
	audio := make([]byte, full)
	defer clear(audio)
	for index := uint64(0); ; index++ {
		sealed, err := ahead.Peek(full + 1)
		if err != nil && !errors.Is(err, io.EOF) {
			return size, fmt.Errorf("reading the recording: %w", err)
		}
		final := len(sealed) <= full
		sealed = sealed[:min(len(sealed), full)]
		plain, err := o.chunk(audio[:0], sealed, index, final)
		if err != nil {
			return size, err
		}
		if _, err := dst.Write(plain); err != nil {
			return size, fmt.Errorf("writing the audio: %w", err)
		}
		size += int64(len(plain))
		if final {
			return size, nil
		}
		if _, err := ahead.Discard(len(sealed)); err != nil {
			return size, fmt.Errorf("reading the recording: %w", err)
		}
	}
}
