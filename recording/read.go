package recording

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/tracing"
	"trunkline/recording/envelope"
)

// Audio is a stored recording, opened, for reading any part of it. Close it.
type Audio struct {
	Metadata
	io.ReadSeeker
	release func() error
}

// Close lets the recording go.
func (a *Audio) Close() error { return a.release() }

// Metadata returns the metadata of a recording.
func (s *Service) Metadata(ctx context.Context, accountID, recordingID string) (*Metadata, error) {
	r, err := s.rows.find(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}
	return &r.Metadata, nil
}

// Open opens a recording whichever version of the key it was sealed under. A
// sealed one's end is proven before this returns, and every part before it is
// read; all of a plain one is compared with its digest before this returns. That it was opened is in the audit log before a byte can be read.
func (s *Service) Open(ctx context.Context, accountID, recordingID string) (*Audio, error) {
	ctx, span := s.tracer.Start(ctx, "recording open", tracing.Account(accountID))
	audio, err := s.find(ctx, accountID, recordingID)
	if err == nil {
		describeSpan(span, &audio.Metadata)
		if err = s.audit.Record(ctx, s.audit.Entry(ctx, audit.RecordingRead, accountID, auditTarget(recordingID))); err != nil {
			audio, err = nil, errors.Join(err, audio.Close())
		}
	}
	span.End(err)
	return audio, err
}

func describeSpan(span tracing.Span, m *Metadata) {
	span.Set(tracing.Flag("trunkline.recording.encrypted", m.Encrypted), tracing.Number("trunkline.recording.size", int(m.Size)))
}

func (s *Service) find(ctx context.Context, accountID, recordingID string) (*Audio, error) {
	r, object, err := s.object(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}
	audio, err := s.openObject(ctx, r, object)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return audio, nil
}

// object finds a recording's row and opens its object. When the object has just
// been replaced by Reseal, the row names the new one.
func (s *Service) object(ctx context.Context, accountID, recordingID string) (*row, io.ReadSeekCloser, error) {
	var before string
	for {
		r, err := s.rows.find(ctx, accountID, recordingID)
		if err != nil {
			return nil, nil, err
		}
		object, err := s.backend.Open(ctx, r.object)
		if err == nil {
			return r, object, nil
		}
		if fault.KindOf(err) != fault.KindNotFound {
			return nil, nil, err
		}
		if r.object == before {
			return nil, nil, s.damaged(r, err)
		}
		before = r.object
	}
}

func (s *Service) openObject(ctx context.Context, r *row, object io.ReadSeekCloser) (*Audio, error) {
	if !r.Encrypted {
		if end, err := object.Seek(0, io.SeekEnd); err != nil {
			return nil, fault.Internal(err, "reading the recording failed")
		} else if end != r.Size {
			return nil, s.damaged(r, fmt.Errorf("%d bytes, want %d", end, r.Size))
		}
		if err := s.checkDigest(ctx, r, object); err != nil {
			return nil, err
		}
		return &Audio{r.Metadata, object, object.Close}, nil
	}
	sealed, err := envelope.NewReader(object, r.want(), s.rootOf(ctx, r))
	if err != nil {
		return nil, s.openFault(r, err)
	}
	return &Audio{r.Metadata, &checked{sealed, s, r}, func() error {
		return errors.Join(sealed.Close(), object.Close())
	}}, nil
}

// checkDigest reads the whole object of a plain recording, compares it with the
// recording's digest, and goes back to its beginning. So nothing of a changed
// recording is released, also where a part of it is asked for; every read costs
// reading the object once more.
func (s *Service) checkDigest(ctx context.Context, r *row, object io.ReadSeeker) error {
	if _, err := object.Seek(0, io.SeekStart); err != nil {
		return fault.Internal(err, "reading the recording failed")
	}
	digest := sha256.New()
	for {
		if err := ctx.Err(); err != nil { // the listener has left
			return fault.Unavailable(err, retryAfter, "reading the recording was broken off")
		}
		_, err := io.CopyN(digest, object, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return dirFault(err, "reading a recording")
		}
	}
	if got := digestOf(digest); got != r.Digest {
		return s.damaged(r, fmt.Errorf("digest %s, want %s", got, r.Digest))
	}
	if _, err := object.Seek(0, io.SeekStart); err != nil {
		return fault.Internal(err, "reading the recording failed")
	}
	return nil
}

// digestOf returns a recording's digest as it is stored.
func digestOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

func (r *row) want() envelope.Want {
	return envelope.Want{AccountID: r.AccountID, RecordingID: r.RecordingID}
}

// errOther: a genuine recording of the same account and id, but not this one,
// as one deleted and stored anew would leave behind.
var errOther = errors.New("the object is not the one that was stored")

// rootOf finds the key that an object of r needs.
func (s *Service) rootOf(ctx context.Context, r *row) envelope.RootOf {
	return func(h *envelope.Header) (*envelope.Root, error) {
		if base64.StdEncoding.EncodeToString(h.Salt[:]) != r.Salt || int64(h.KeyVersion) != r.KeyVersion || h.KeyID != r.KeyID {
			return nil, errOther
		}
		key, err := s.keys.Key(ctx, r.AccountID, r.KeyVersion)
		if err != nil {
			return nil, err
		}
		return s.roots.Root(key.Key, key.Salt, h.Iterations)
	}
}

// openFault: what has a kind is a key's or the database's trouble, the rest is
// the fault of the recording.
func (s *Service) openFault(r *row, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return fmt.Errorf("opening recording %s: %w", r.RecordingID, err)
	}
	return s.damaged(r, err)
}

func (s *Service) damaged(r *row, err error) error {
	s.metrics.damaged.Inc()
	s.log.Error("stored recording damaged", "account_id", r.AccountID, "recording_id", r.RecordingID, "object", r.object, "error", err)
	return fault.Internal(err, "the recording is damaged")
}

// checked reports damage that is found while playing.
type checked struct {
	sealed *envelope.Reader
	s      *Service
	r      *row
}

func (c *checked) Seek(offset int64, whence int) (int64, error) { return c.sealed.Seek(offset, whence) }

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.sealed.Read(p)
	if err != nil && err != io.EOF {
		err = c.s.openFault(c.r, err)
	}
	return n, err
}

// Delete removes a recording.
func (s *Service) Delete(ctx context.Context, accountID, recordingID string) error {
	r, err := s.rows.delete(ctx, accountID, recordingID)
	if err != nil {
		return err
	}
	if err := s.backend.Delete(ctx, r.object); err != nil {
		// It is not reachable any more, and Sweep tries again.
		s.log.WarnContext(ctx, "deleting a recording's object failed", "object", r.object, "error", err)
	}
	return nil
}
