package envelope

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"
)

// Key is one version of an account's key, to seal with.
type Key struct {
	ID      string
	Version uint32
	Root    *Root
}

// Params describes the recording and the key to seal it under. Created is truncated to
// milliseconds.
type Params struct {
	Suite       Suite
	AccountID   string
	RecordingID string
	ContentType string
	Created     time.Time
	Key         Key
}

// Seal reads audio from src to its end and writes the sealed recording to dst. It
// returns the header and the number of bytes of audio; the recording is complete only if
// err is nil. Returns ErrParams for parameters that do not fit into a header.
func Seal(dst io.Writer, src io.Reader, p Params) (h *Header, size int64, err error) {
	w, err := NewWriter(dst, p)
	if err != nil {
		return nil, 0, err
	}

	_, err = io.Copy(w, src)
	if err != nil {
		return nil, w.size, w.finish(err)
	}

	if err := w.Close(); err != nil {
		return nil, w.size, err
	}

	return w.header, w.size, nil
}

// Writer seals the audio written to it. The recording is complete after Close has returned
// nil. It buffers one chunk and is not safe for concurrent use.
type Writer struct {
	dst    io.Writer
	header *Header
	cipher chunkCipher
	aad    *chunkAAD
	index  uint64 // of the next chunk
	size   int64  // bytes of audio sealed
	err    error  // the first failure; every later call returns it

	// A chunk is sealed only when it is known whether it is the last, so up to one full
	// chunk is buffered; ReadFrom reads one byte more to detect the end.
	*buffers      // nil when closed
	bufferedBytes int
}

// NewWriter generates the keys of a new recording and writes its header to dst.
func NewWriter(dst io.Writer, p Params) (*Writer, error) {
	h := &Header{
		Suite: p.Suite, AccountID: p.AccountID, RecordingID: p.RecordingID,
		ContentType: p.ContentType, Created: p.Created.UTC().Truncate(time.Millisecond),
	}
	var dek [keySize]byte
	defer clear(dek[:])

	_, err := rand.Read(dek[:])
	if err != nil {
		return nil, fmt.Errorf("generating a data key: %w", err)
	}

	h.commitment, err = subkey(&dek, labelCommit)
	if err != nil {
		return nil, err
	}

	if err := h.setKey(&dek, p.Key); err != nil {
		return nil, err
	}

	chunks, err := h.Suite.newCipher(&dek)
	if err != nil {
		return nil, err
	}

	_, err = dst.Write(h.encode())
	if err != nil {
		return nil, fmt.Errorf("writing the header: %w", err)
	}

	return &Writer{
		dst: dst, header: h, cipher: chunks, aad: newChunkAAD(h.coreDigest()), buffers: getBuffers(),
	}, nil
}

// Write implements io.Writer. It seals whole chunks without copying them first.
func (w *Writer) Write(p []byte) (written int, err error) {
	for written < len(p) && w.err == nil {
		rest := p[written:]
		switch {
		case w.bufferedBytes == ChunkSize:
			w.sealChunk(w.plain[:ChunkSize], false)
			w.bufferedBytes = 0
		case w.bufferedBytes == 0 && len(rest) > ChunkSize:
			w.sealChunk(rest[:ChunkSize], false)
			written += ChunkSize
		default:
			n := copy(w.plain[w.bufferedBytes:ChunkSize], rest)
			w.bufferedBytes += n
			written += n
		}
	}

	return written, w.err
}

// ReadFrom implements io.ReaderFrom.
func (w *Writer) ReadFrom(src io.Reader) (read int64, err error) {
	for w.err == nil {
		n, err := io.ReadFull(src, w.plain[w.bufferedBytes:ChunkSize+1])
		read += int64(n)
		w.bufferedBytes += n

		switch err {
		case nil:
			w.sealChunk(w.plain[:ChunkSize], false)
			// The byte behind the chunk showed that it is not the last, and begins the next.
			w.plain[0], w.bufferedBytes = w.plain[ChunkSize], 1
		case io.EOF, io.ErrUnexpectedEOF:
			return read, nil
		default:
			w.err = fmt.Errorf("reading the recording: %w", err)
		}
	}

	return read, w.err
}

// Close seals the final chunk. It does not close dst.
func (w *Writer) Close() error {
	if w.err == nil {
		w.sealChunk(w.plain[:w.bufferedBytes], true)
	}
	return w.finish(w.err)
}

// finish releases the buffers, makes all later calls fail, and returns err.
func (w *Writer) finish(err error) error {
	if w.err == nil {
		w.err = fmt.Errorf("%w: the recording is closed", ErrParams)
	}
	if w.buffers != nil {
		w.release()
		w.buffers = nil
	}
	return err
}

func (w *Writer) sealChunk(plain []byte, final bool) {
	if w.index >= maxChunks {
		w.err = fmt.Errorf("%w: too long", ErrParams)
		return
	}

	sealed, err := w.cipher.encrypt(w.sealed[:0], plain, w.aad.forChunk(w.index, final))
	if err != nil {
		w.err = fmt.Errorf("chunk %d: %w", w.index, err)
		return
	}

	_, err = w.dst.Write(sealed)
	if err != nil {
		w.err = fmt.Errorf("writing the recording: %w", err)
		return
	}

	w.index++
	w.size += int64(len(plain))
}
