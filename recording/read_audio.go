package recording

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/tracing"
	"trunkline/recording/envelope"
)

// Audio reads any part of an opened recording. The caller must close it.
type Audio struct {
	Metadata
	io.ReadSeeker
	encoders chan struct{} // objects.encoders
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
	audio, err := s.objects.openStored(ctx, accountID, recordingID)
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

// objects opens the objects of recordings, and reports those that are damaged.
type objects struct {
	rows     rows
	store    Store
	seals    *seals
	metrics  *metrics
	log      *slog.Logger
	encoders chan struct{} // has an element for each goroutine that encodes Opus; capacity: how many may
}

// openStored opens a recording without an audit entry.
func (o *objects) openStored(ctx context.Context, accountID, recordingID string) (*Audio, error) {
	r, object, err := o.findObject(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}
	audio, err := o.newAudio(ctx, r, object)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return audio, nil
}

// findObject finds a recording's row and opens its object. If Reseal replaces the object
// in between, findObject opens the new one.
func (o *objects) findObject(ctx context.Context, accountID, recordingID string) (*row, io.ReadSeekCloser, error) {
	var previous string
	for {
		r, err := o.rows.find(ctx, accountID, recordingID)
		if err != nil {
			return nil, nil, err
		}

		object, err := o.store.Open(ctx, r.object)
		if err == nil {
			return r, object, nil
		}
		if fault.KindOf(err) != fault.KindNotFound {
			return nil, nil, err
		}

		// Twice the same name: no reseal, the object is gone.
		if r.object == previous {
			return nil, nil, o.reportDamage(r, err)
		}

		previous = r.object
	}
}

func (o *objects) newAudio(ctx context.Context, r *row, object io.ReadSeekCloser) (*Audio, error) {
	if !r.Encrypted {
		end, err := object.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, fault.Internal(err, "reading the recording failed")
		} else if end != r.Size {
			return nil, o.reportDamage(r, fmt.Errorf("%d bytes, want %d", end, r.Size))
		}

		if err := o.checkDigest(ctx, r, object); err != nil {
			return nil, err
		}

		return &Audio{Metadata: r.Metadata, ReadSeeker: object, encoders: o.encoders, release: object.Close}, nil
	}

	sealed, err := envelope.NewReader(object, r.expected(), o.seals.finder(ctx, r))
	if err != nil {
		return nil, o.openError(r, err)
	}

	return &Audio{
		Metadata: r.Metadata, ReadSeeker: &damageReporter{reader: sealed, objects: o, row: r}, encoders: o.encoders,
		release: func() error { return errors.Join(sealed.Close(), object.Close()) },
	}, nil
}

// checkDigest reads the whole object of a plain recording, compares it with the
// recording's digest, and seeks to its beginning. So no byte of an altered recording is
// released, even for a request of a part. Each Open therefore reads the object once more.
func (o *objects) checkDigest(ctx context.Context, r *row, object io.ReadSeeker) error {
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
		return o.reportDamage(r, fmt.Errorf("digest %s, want %s", got, r.Digest))
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

// openError wraps an error that has a kind, which comes from the key store or the
// database. Any other error means that the recording is damaged.
func (o *objects) openError(r *row, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return fmt.Errorf("opening recording %s: %w", r.RecordingID, err)
	}
	return o.reportDamage(r, err)
}

func (o *objects) reportDamage(r *row, err error) error {
	o.metrics.damaged.Inc()
	o.log.Error("stored recording damaged", "account_id", r.AccountID, "recording_id", r.RecordingID,
		"object", r.object, "error", err)
	return fault.Internal(err, "the recording is damaged")
}

// damageReporter is a reader that reports damage of a sealed recording.
type damageReporter struct {
	reader  *envelope.Reader
	objects *objects
	row     *row
}

func (d *damageReporter) Seek(offset int64, whence int) (int64, error) {
	return d.reader.Seek(offset, whence)
}

func (d *damageReporter) Read(p []byte) (int, error) {
	n, err := d.reader.Read(p)
	if err != nil && err != io.EOF {
		err = d.objects.openError(d.row, err)
	}
	return n, err
}
