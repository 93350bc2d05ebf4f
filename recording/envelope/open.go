package envelope

import (
	"fmt"
	"io"
)

// Expected has the account and recording that a header must have; an empty field is not
// checked.
type Expected struct{ AccountID, RecordingID string }

// RootFinder returns the root for the key id and version in a header. It is called once,
// with a header that is not authenticated yet. The caller wipes the root after use.
type RootFinder func(*Header) (*Root, error)

// openKey checks the account and recording of a header and returns the data key.
func (h *Header) openKey(want Expected, rootOf RootFinder) (*[keySize]byte, error) {
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

	return h.unwrapKey(root)
}

func (h *Header) newOpener(want Expected, rootOf RootFinder) (*opener, error) {
	dek, err := h.openKey(want, rootOf)
	if err != nil {
		return nil, err
	}
	defer clear(dek[:])

	chunks, err := h.Suite.newCipher(dek)
	if err != nil {
		return nil, err
	}

	return &opener{chunks, newChunkAAD(h.coreDigest())}, nil
}

// Open reads a sealed recording from src to its end and writes its audio to dst, each
// chunk after its authentication. The recording is complete only if err is nil; with an
// error dst has an authentic beginning.
func Open(dst io.Writer, src io.Reader, want Expected, rootOf RootFinder) (h *Header, size int64, err error) {
	h, err = Inspect(src)
	if err != nil {
		return nil, 0, err
	}

	o, err := h.newOpener(want, rootOf)
	if err != nil {
		return nil, 0, err
	}

	w := &openingWriter{dst: dst, opener: o, fullLen: ChunkSize + o.overhead(), buffers: getBuffers()}
	defer w.release()

	_, err = io.Copy(w, src)
	if err != nil {
		return h, w.size, err
	}

	// Also of nothing: without a final chunk the recording was cut short.
	w.openChunk(w.sealed[:w.bufferedBytes], true)
	return h, w.size, w.err
}

// openingWriter opens the chunks that are written to it and writes their audio to dst. It
// is the counterpart of Writer.
type openingWriter struct {
	dst io.Writer
	*opener
	fullLen int    // bytes of a sealed chunk that is not the last
	index   uint64 // of the next chunk
	size    int64  // bytes of audio written
	err     error  // the first failure

	*buffers
	bufferedBytes int // bytes in sealed: up to a full chunk, which may be the last
}

// Write implements io.Writer. It opens whole chunks without copying them first.
func (w *openingWriter) Write(p []byte) (written int, err error) {
	for written < len(p) && w.err == nil {
		rest := p[written:]
		switch {
		case w.bufferedBytes == w.fullLen:
			w.openChunk(w.sealed[:w.fullLen], false)
			w.bufferedBytes = 0
		case w.bufferedBytes == 0 && len(rest) > w.fullLen:
			w.openChunk(rest[:w.fullLen], false)
			written += w.fullLen
		default:
			n := copy(w.sealed[w.bufferedBytes:w.fullLen], rest)
			w.bufferedBytes += n
			written += n
		}
	}

	return written, w.err
}

// ReadFrom implements io.ReaderFrom.
func (w *openingWriter) ReadFrom(src io.Reader) (read int64, err error) {
	for w.err == nil {
		n, err := io.ReadFull(src, w.sealed[w.bufferedBytes:w.fullLen+1])
		read += int64(n)
		w.bufferedBytes += n

		switch err {
		case nil:
			w.openChunk(w.sealed[:w.fullLen], false)
			// As in Writer: only what follows shows that a chunk is not the last.
			w.sealed[0], w.bufferedBytes = w.sealed[w.fullLen], 1
		case io.EOF, io.ErrUnexpectedEOF:
			return read, nil
		default:
			w.err = fmt.Errorf("reading the recording: %w", err)
		}
	}

	return read, w.err
}

func (w *openingWriter) openChunk(sealed []byte, final bool) {
	audio, err := w.opener.openChunk(w.plain[:0], sealed, w.index, final)
	if err != nil {
		w.err = err
		return
	}

	_, err = w.dst.Write(audio)
	if err != nil {
		w.err = fmt.Errorf("writing the audio: %w", err)
		return
	}

	w.index++
	w.size += int64(len(audio))
}
