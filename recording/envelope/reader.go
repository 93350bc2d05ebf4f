package envelope

import (
	"errors"
	"fmt"
	"io"
)

// Reader is the audio of a sealed recording as an io.ReadSeeker. It reads and opens only
// the chunks that it needs and buffers one of them. It is not safe for concurrent use.
type Reader struct {
	parsedHeader *Header
	opener       *opener
	src          io.ReadSeeker
	srcChunk     uint64 // the chunk at the position of src
	lastChunk    uint64 // index of the final chunk
	lastChunkLen int    // sealed length of the final chunk
	audioSize    int64  // of the audio

	pos       int64    // in the audio
	buffers   *buffers // nil when closed
	audio     []byte   // of the chunk held, in buffers.plain
	heldChunk uint64   // its index; valid while audio is not empty
}

// NewReader authenticates the header and the final chunk of the recording in src, so
// that a truncated recording is refused before any byte of it is returned.
func NewReader(src io.ReadSeeker, want Expected, rootOf RootFinder) (*Reader, error) {
	end, err := src.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("finding the recording's length: %w", err)
	}

	_, err = src.Seek(0, io.SeekStart)
	if err != nil {
		return nil, fmt.Errorf("seeking to the recording's start: %w", err)
	}

	h, err := Inspect(src)
	if err != nil {
		return nil, err
	}

	o, err := h.newOpener(want, rootOf)
	if err != nil {
		return nil, err
	}

	fullLen := int64(ChunkSize + o.overhead())
	body := end - h.Len()
	if body < int64(o.minSealedLen()) {
		return nil, &ChunkError{0, ErrTruncated}
	}

	// One less: a full last chunk is not followed by an empty one.
	last := (body - 1) / fullLen
	r := &Reader{
		parsedHeader: h, opener: o, src: src, lastChunk: uint64(last), lastChunkLen: int(body - last*fullLen),
		buffers: getBuffers(),
	}
	if err := r.loadChunk(r.lastChunk); err != nil {
		r.buffers.release()
		return nil, err
	}

	r.audioSize = last*ChunkSize + int64(len(r.audio))
	return r, nil
}

// Header returns the recording's authenticated header.
func (r *Reader) Header() *Header { return r.parsedHeader }

// Size returns the length of the audio in bytes.
func (r *Reader) Size() int64 { return r.audioSize }

// Close wipes the buffered audio. It does not close src.
func (r *Reader) Close() error {
	if r.buffers != nil {
		r.buffers.release()
		r.buffers, r.audio = nil, nil
	}
	return nil
}

var errClosed = errors.New("the recording is closed")

// loadChunk reads and opens the chunk, unless it is buffered.
func (r *Reader) loadChunk(index uint64) error {
	if len(r.audio) > 0 && r.heldChunk == index {
		return nil
	}
	if r.buffers == nil {
		return errClosed
	}

	r.audio = nil
	fullLen := ChunkSize + r.opener.overhead()
	if r.srcChunk != index {
		_, err := r.src.Seek(r.parsedHeader.Len()+int64(index)*int64(fullLen), io.SeekStart)
		if err != nil {
			return fmt.Errorf("seeking to chunk %d: %w", index, err)
		}
	}

	sealed := r.buffers.sealed[:fullLen]
	if index == r.lastChunk {
		sealed = sealed[:r.lastChunkLen]
	}

	r.srcChunk = index + 1
	_, err := io.ReadFull(r.src, sealed)
	if err != nil {
		r.srcChunk = maxChunks // unknown
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &ChunkError{index, ErrTruncated}
		}
		return fmt.Errorf("reading chunk %d: %w", index, err)
	}

	plain, err := r.opener.openChunk(r.buffers.plain[:0], sealed, index, index == r.lastChunk)
	if err != nil {
		return err
	}

	r.audio, r.heldChunk = plain, index
	return nil
}

// audioAtPos returns the audio from the position to the end of its chunk, authenticated.
func (r *Reader) audioAtPos() ([]byte, error) {
	if r.pos >= r.audioSize {
		return nil, io.EOF
	}
	if err := r.loadChunk(uint64(r.pos / ChunkSize)); err != nil {
		return nil, err
	}
	return r.audio[r.pos%ChunkSize:], nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}

	audio, err := r.audioAtPos()
	if err != nil {
		return 0, err
	}

	n := copy(p, audio)
	r.pos += int64(n)
	return n, nil
}

// WriteTo implements io.WriterTo. It writes the rest of the audio without copying it.
func (r *Reader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		audio, err := r.audioAtPos()
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}

		n, err := w.Write(audio)
		written += int64(n)
		r.pos += int64(n)
		if err != nil {
			return written, fmt.Errorf("writing the audio: %w", err)
		}
	}
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.audioSize
	default:
		return 0, fmt.Errorf("whence %d", whence)
	}

	if offset < 0 {
		return 0, errors.New("a position before the start")
	}

	r.pos = offset
	return offset, nil
}
