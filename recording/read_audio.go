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

// Audio reads any part of an opened recording. The caller must close it.
type Audio struct {
	Metadata
	io.ReadSeeker
	encoders chan struct{}
	release  func() error
}

// Close closes the recording.
func (a *Audio) Close() error { return a.release() }

// Metadata returns the metadata of a recording.
func (s *Service) Metadata(ctx context.Context, accountID, recordingID string) (*Metadata, error) {
	r, err := s.rows.find(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}
	return &r.Metadata, nil
}

// Open opens a recording, sealed under any version of the key or plain. It authenticates
// the end of a sealed recording, whose other parts are authenticated when they are read,
// and compares the digest of a plain one. The audit entry is durable before a byte can be
// read.
func (s *Service) Open(ctx context.Context, accountID, recordingID string) (*Audio, error) {
	ctx, span := s.tracer.Start(ctx, "recording open", tracing.Account(accountID))
	audio, err := s.openUnaudited(ctx, accountID, recordingID)
	if err == nil {
		describeSpan(span, &audio.Metadata)
		err = s.audit.Record(ctx, s.audit.Entry(ctx, audit.RecordingRead, accountID, auditTarget(recordingID)))
		if err != nil {
			audio, err = nil, errors.Join(err, audio.Close())
		}
	}

	span.End(err)
	return audio, err
}

func describeSpan(span tracing.Span, m *Metadata) {
	span.Set(tracing.Flag("trunkline.recording.encrypted", m.Encrypted),
		tracing.Number("trunkline.recording.size", int(m.Size)))
}

func (s *Service) openUnaudited(ctx context.Context, accountID, recordingID string) (*Audio, error) {
	r, object, err := s.findObject(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}
	audio, err := s.newAudio(ctx, r, object)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return audio, nil
}

// findObject finds a recording's row and opens its object. If Reseal replaces the object
// in between, findObject opens the new one.
func (s *Service) findObject(ctx context.Context, accountID, recordingID string) (*row, io.ReadSeekCloser, error) {
	var previous string
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

		// Twice the same name: no reseal, the object is gone.
		if r.object == previous {
			return nil, nil, s.reportDamage(r, err)
		}

		previous = r.object
	}
}

func (s *Service) newAudio(ctx context.Context, r *row, object io.ReadSeekCloser) (*Audio, error) {
	if !r.Encrypted {
		end, err := object.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, fault.Internal(err, "reading the recording failed")
		} else if end != r.Size {
			return nil, s.reportDamage(r, fmt.Errorf("%d bytes, want %d", end, r.Size))
		}

		if err := s.checkDigest(ctx, r, object); err != nil {
			return nil, err
		}

		return &Audio{r.Metadata, object, s.encoders, object.Close}, nil
	}

	sealed, err := envelope.NewReader(object, r.expected(), s.rootFinder(ctx, r))
	if err != nil {
		return nil, s.openError(r, err)
	}

	return &Audio{r.Metadata, &damageReporter{sealed, s, r}, s.encoders, func() error {
		return errors.Join(sealed.Close(), object.Close())
	}}, nil
}

// checkDigest reads the whole object of a plain recording, compares it with the
// recording's digest, and seeks to its beginning. So no byte of an altered recording is
// released, even for a request of a part. Each Open therefore reads the object once more.
func (s *Service) checkDigest(ctx context.Context, r *row, object io.ReadSeeker) error {
	_, err := object.Seek(0, io.SeekStart)
	if err != nil {
		return fault.Internal(err, "reading the recording failed")
	}

	digest := sha256.New()
	for {
		if err := ctx.Err(); err != nil { // the client has disconnected
			return fault.Unavailable(err, retryAfter, "reading the recording was interrupted")
		}

		_, err := io.CopyN(digest, object, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fileError(err, "reading a recording")
		}
	}

	got := formatDigest(digest)
	if got != r.Digest {
		return s.reportDamage(r, fmt.Errorf("digest %s, want %s", got, r.Digest))
	}

	_, err = object.Seek(0, io.SeekStart)
	if err != nil {
		return fault.Internal(err, "reading the recording failed")
	}

	return nil
}

// formatDigest returns the digest in the form of Metadata.Digest.
func formatDigest(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

func (r *row) expected() envelope.Expected {
	return envelope.Expected{AccountID: r.AccountID, RecordingID: r.RecordingID}
}

// errNotStoredObject is returned for an authentic recording with the same account and id
// that is not the stored one, such as one that was deleted before.
var errNotStoredObject = errors.New("the object is not the one that was stored")

// rootFinder returns the function that finds the root for an object of r.
func (s *Service) rootFinder(ctx context.Context, r *row) envelope.RootFinder {
	return func(h *envelope.Header) (*envelope.Root, error) {
		if base64.StdEncoding.EncodeToString(h.Salt[:]) != r.Salt || int64(h.KeyVersion) != r.KeyVersion ||
			h.KeyID != r.KeyID {
			return nil, errNotStoredObject
		}

		key, err := s.keys.Key(ctx, r.AccountID, r.KeyVersion)
		if err != nil {
			return nil, err
		}

		return s.roots.Root(key.Key, key.Salt, h.Iterations)
	}
}

// openError wraps an error that has a kind, which comes from the key store or the
// database. Any other error means that the recording is damaged.
func (s *Service) openError(r *row, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return fmt.Errorf("opening recording %s: %w", r.RecordingID, err)
	}
	return s.reportDamage(r, err)
}

func (s *Service) reportDamage(r *row, err error) error {
	s.metrics.damaged.Inc()
	s.log.Error("stored recording damaged", "account_id", r.AccountID, "recording_id", r.RecordingID,
		"object", r.object, "error", err)
	return fault.Internal(err, "the recording is damaged")
}

// damageReporter is a reader that reports damage of a sealed recording.
type damageReporter struct {
	reader  *envelope.Reader
	service *Service
	row     *row
}

func (c *damageReporter) Seek(offset int64, whence int) (int64, error) {
	return c.reader.Seek(offset, whence)
}

func (c *damageReporter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if err != nil && err != io.EOF {
		err = c.service.openError(c.row, err)
	}
	return n, err
}
