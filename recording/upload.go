package recording

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"regexp"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/internal/tracing"
	"trunkline/recording/envelope"
)

// Upload is a new recording.
type Upload struct {
	AccountID   string
	RecordingID string
	ContentType string // "": application/octet-stream
	Call        Call
	Pauses      []Pause
	Body        io.Reader
}

const defaultContentType = "application/octet-stream"

func (u *Upload) check() error {
	if !envelope.ValidID(u.RecordingID) {
		return fault.InvalidField("recording_id", "invalid",
			"a recording id has 1 to 128 characters of A-Z a-z 0-9 _ . - and no dot in front")
	}
	if u.ContentType == "" {
		u.ContentType = defaultContentType
	}
	if !envelope.ValidContentType(u.ContentType) {
		return fault.InvalidField("Content-Type", "invalid", "a content type has at most 127 printable characters")
	}

	return nil
}

// Store stores a new recording, sealed if the account's configuration requires it. A
// recording that must be sealed and cannot be is not stored.
func (s *Service) Store(ctx context.Context, u Upload) (*Metadata, error) {
	ctx, span := s.tracer.Start(ctx, "recording store", tracing.Account(u.AccountID))
	stored, err := s.storeUpload(ctx, u)
	if err == nil {
		describeSpan(span, stored)
	}
	span.End(err)
	return stored, err
}

func (s *Service) storeUpload(ctx context.Context, u Upload) (*Metadata, error) {
	if err := u.check(); err != nil {
		return nil, err
	}
	if err := s.requireFreeSpace(); err != nil {
		return nil, err
	}

	// This check avoids the upload; the primary key of the row detects concurrent uploads.
	idInUse, err := s.rows.exists(ctx, u.AccountID, u.RecordingID)
	if err != nil {
		return nil, err
	} else if idInUse {
		return nil, errExists(u.RecordingID)
	}

	// Before the body is read: it is not taken in for nothing.
	if err := s.usage.requireQuota(ctx, u.AccountID); err != nil {
		return nil, err
	}

	sealer, err := s.seals.forNew(ctx, u.AccountID)
	if err != nil {
		s.metrics.refused.Inc()
		s.log.ErrorContext(ctx, "recording refused: sealing failed", "account_id", u.AccountID, "error", err)
		return nil, fault.Unavailable(err, retryAfter, "the recording cannot be sealed and is not stored")
	}

	row, err := s.writeObject(ctx, &u, sealer, s.settings.MaxBytes)
	if err != nil {
		return nil, err
	}

	if err := s.createRow(ctx, row); err != nil {
		return nil, err
	}

	return &row.Metadata, nil
}

// createRow stores the row of a new object. Returns fault.KindConflict if the recording exists.
func (s *Service) createRow(ctx context.Context, row *row) error {
	if err := s.prepareRow(ctx, row); err != nil {
		return errors.Join(err, s.objects.store.Delete(ctx, row.object))
	}

	err := s.rows.create(ctx, row)
	// Another upload was first: its object is another file, as each has a name of its own.
	if fault.KindOf(err) == fault.KindConflict {
		return errors.Join(err, s.objects.store.Delete(ctx, row.object))
	}
	if err != nil {
		// The row may have been stored despite the error; if not, Sweep deletes the object.
		return err
	}

	s.usage.add(row.AccountID, row.StoredSize)
	s.metrics.countStored(row.Encrypted, row.Size)
	s.wake()

	return nil
}

// prepareRow fills what a new row has from its call's record, if that is there, and decides when
// the recording is announced: where the record is missing, it is given announceWait.
func (s *Service) prepareRow(ctx context.Context, r *row) error {
	r.announceAfter = r.createdAt
	found, err := s.fillFromRecord(ctx, r)
	if err != nil {
		s.logFailure(ctx, "looking for a recording's call", err)
	}

	if err := s.setExpiry(ctx, r); err != nil {
		return err
	}
	if found || s.calls == nil {
		return nil
	}

	r.completeAfter = r.nextCompletion(time.Now())
	if r.completeAfter != nil {
		r.announceAfter += announceWait.Milliseconds()
	}

	return nil
}

// wake wakes Run to announce recordings.
func (s *Service) wake() {
	select {
	case s.wakeAnnouncer <- struct{}{}:
	default:
	}
}

// requireFreeSpace returns fault.KindUnavailable if there is too little free space.
func (s *Service) requireFreeSpace() error {
	if err := s.checkFreeSpace(); err != nil {
		return fault.Unavailable(err, retryAfter, "there is too little free disk space for recordings")
	}
	return nil
}

// errExists returns the error of storing a recording whose id is taken.
func errExists(id string) error { return fault.Conflict("there is a recording %s already", id) }

// writeObject creates the object of an upload of at most limit bytes (0: of any size) and returns its row, which is
// not stored yet.
func (s *Service) writeObject(ctx context.Context, u *Upload, sealer *recordingSealer,
	limit setting.Bytes) (*row, error) {
	now := time.Now().UTC()
	r := &row{
		Metadata: Metadata{RecordingID: u.RecordingID, AccountID: u.AccountID, ContentType: u.ContentType,
			Call: u.Call, Pauses: u.Pauses},
		createdAt: now.UnixMilli(),
	}
	src := &bodyReader{body: u.Body, limit: int64(limit), digest: sha256.New(),
		checkFreeSpace: s.requireFreeSpace}
	write := func(w io.Writer) error { _, err := io.Copy(w, src); return err }

	if sealer != nil {
		defer sealer.key.Root.Wipe()

		r.Encrypted = true
		write = func(w io.Writer) error {
			h, _, err := envelope.Seal(w, src, envelope.Params{
				Suite: sealer.suite, AccountID: u.AccountID, RecordingID: u.RecordingID,
				ContentType: u.ContentType, Created: now, Key: sealer.key,
			})
			if err == nil {
				r.setKeyFields(h)
			}

			return err
		}
	}

	r.object = objectName(u.AccountID, u.RecordingID, r.Encrypted)
	var err error
	r.StoredSize, err = s.objects.store.Put(ctx, r.object, write)
	if err != nil {
		if src.err != nil {
			return nil, src.err // an error of the request, not of the store
		}
		return nil, err
	}

	r.Size, r.Digest = src.size, formatDigest(src.digest)
	r.CreatedAt = now.Unix()
	return r, nil
}

// setKeyFields copies the fields of the key from a header.
func (r *row) setKeyFields(h *envelope.Header) {
	r.KeyID, r.KeyVersion, r.Algorithm = h.KeyID, int64(h.KeyVersion), h.Suite.String()
	r.Salt = base64.StdEncoding.EncodeToString(h.Salt[:])
}

// objectName returns a unique name, so that no object is ever overwritten. It begins with
// account and recording id, for people who search the store. An account's folder never
// begins with a dot: the store reserves such names.
func objectName(accountID, recordingID string, sealed bool) string {
	if accountID[0] == '.' {
		accountID = "_" + accountID
	}
	extension := ".audio"
	if sealed {
		extension = ".trkrec"
	}
	return accountID + "/" + recordingID + "." + strings.ToLower(rand.Text()[:16]) + extension
}

var objectPattern = regexp.MustCompile(`^[^/.][^/]*/[^/.][^/]*\.[a-z2-7]{16}\.(audio|trkrec)$`)

// bodyReader reads an upload's body. It counts and digests the bytes, enforces the limit,
// and stores an error of the body, to distinguish it from errors of the store.
type bodyReader struct {
	body   io.Reader
	limit  int64 // bytes; 0: none
	size   int64 // bytes read so far
	digest hash.Hash
	err    error // of the body, the limit or the free space

	checkFreeSpace func() error
	checkedSize    int64 // size at the last checkFreeSpace
}

// diskCheckInterval is the number of bytes of an upload between two checks of the free
// space.
const diskCheckInterval = 8 << 20

func (s *bodyReader) Read(p []byte) (int, error) {
	// Other uploads fill the disk, too, while this one goes on.
	if s.size-s.checkedSize >= diskCheckInterval {
		s.checkedSize = s.size
		s.err = s.checkFreeSpace()
		if s.err != nil {
			return 0, s.err
		}
	}

	n, err := s.body.Read(p)
	s.size += int64(n)
	s.digest.Write(p[:n])
	var f *fault.Error
	switch {
	case s.limit > 0 && s.size > s.limit:
		s.err = fault.New(fault.KindTooLarge, "a recording may have at most %d bytes", s.limit)
	case err == nil || err == io.EOF:
		return n, err
	case errors.As(err, &f):
		s.err = err
	default:
		s.err = &fault.Error{Kind: fault.KindInvalid, Message: "the body ended too early", Cause: err}
	}

	return n, s.err
}
