package envelope

import (
	"fmt"
	"io"
)

// Want has the expected account and recording; an empty field is not checked.
type Want struct{ AccountID, RecordingID string }

// RootOf finds the root for the key id and version in a header. It is called once, with
// a header that is not authenticated yet; the root is wiped after use.
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

// Open reads a sealed recording from src to its end and writes its audio to dst, each
// chunk after its authentication. The recording is complete only if err is nil; with an
// error dst has an authentic beginning.
func Open(dst io.Writer, src io.Reader, want Want, rootOf RootOf) (h *Header, size int64, err error) {
	h, err = Inspect(src)
	if err != nil {
		return nil, 0, err
	}
	o, err := h.opener(want, rootOf)
	if err != nil {
		return nil, 0, err
	}
	w := &chunkOpener{dst: dst, opener: o, full: ChunkSize + o.overhead(), buffers: takeBuffers()}
	defer w.release()
	if _, err := io.Copy(w, src); err != nil {
		return h, w.size, err
	}
	w.chunk(w.sealed[:w.held], true)
	return h, w.size, w.err
}

// chunkOpener opens the chunks that are written to it and writes their audio to
// dst, as Writer does for sealing.
type chunkOpener struct {
	dst io.Writer
	*opener
	full  int // bytes of a sealed chunk that is not the last
	index uint64
	size  int64
	err   error // the first failure

	*buffers
	held int // bytes in sealed: up to a full chunk waits until more follows
}

// Write implements io.Writer. It opens whole chunks without copying them first.
func (w *chunkOpener) Write(p []byte) (written int, err error) {
	for written < len(p) && w.err == nil {
		rest := p[written:]
		switch {
		case w.held == w.full:
			w.chunk(w.sealed[:w.full], false)
			w.held = 0
		case w.held == 0 && len(rest) > w.full:
			w.chunk(rest[:w.full], false)
			written += w.full
		default:
			n := copy(w.sealed[w.held:w.full], rest)
			w.held += n
			written += n
		}
	}
	return written, w.err
}

// ReadFrom implements io.ReaderFrom.
func (w *chunkOpener) ReadFrom(src io.Reader) (read int64, err error) {
	for w.err == nil {
		n, err := io.ReadFull(src, w.sealed[w.held:w.full+1])
		read += int64(n)
		w.held += n
		switch err {
		case nil:
			w.chunk(w.sealed[:w.full], false)
			w.sealed[0], w.held = w.sealed[w.full], 1
		case io.EOF, io.ErrUnexpectedEOF:
			return read, nil
		default:
			w.err = fmt.Errorf("reading the recording: %w", err)
		}
	}
	return read, w.err
}

func (w *chunkOpener) chunk(sealed []byte, final bool) {
	audio, err := w.opener.chunk(w.plain[:0], sealed, w.index, final)
	if err != nil {
		w.err = err
		return
	}
	if _, err := w.dst.Write(audio); err != nil {
		w.err = fmt.Errorf("writing the audio: %w", err)
		return
	}
	w.index++
	w.size += int64(len(audio))
}
