package recording

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"trunkline/recording/envelope"
)

// Offline opens and seals recordings with an account's key and salt, without database and
// service. The commands `trunkline recording` use it.
type Offline struct{ Key, Salt string }

func (o Offline) deriveRoot(h *envelope.Header) (*envelope.Root, error) {
	return envelope.NewRoot(o.Key, o.Salt, h.Iterations)
}

// Open writes the audio of the sealed recording in src to dst. After an error the bytes
// in dst are authentic but incomplete.
func (o Offline) Open(dst io.Writer, src io.Reader) (*Inspection, error) {
	h, size, err := envelope.Open(dst, src, envelope.Expected{}, o.deriveRoot)
	if err != nil {
		return nil, err
	}
	return newInspection(h, size), nil
}

// SealParams identifies the recording that Seal seals.
type SealParams struct {
	Algorithm   string // "" for AES-256-GCM
	AccountID   string
	RecordingID string
	ContentType string
	KeyID       string
	KeyVersion  uint32
	Created     time.Time
}

// Seal writes the audio in src to dst, sealed.
func (o Offline) Seal(dst io.Writer, src io.Reader, params SealParams) (*Inspection, error) {
	if params.Algorithm == "" {
		params.Algorithm = envelope.AES256GCM.String()
	}

	suite, ok := envelope.ParseSuite(params.Algorithm)
	if !ok {
		return nil, fmt.Errorf("%w: there is no algorithm %q", envelope.ErrParams, params.Algorithm)
	}

	root, err := o.newRoot()
	if err != nil {
		return nil, err
	}
	defer root.Wipe()

	h, size, err := envelope.Seal(dst, src, envelope.Params{
		Suite: suite, AccountID: params.AccountID, RecordingID: params.RecordingID, ContentType: params.ContentType,
		Created: params.Created, Key: envelope.Key{ID: params.KeyID, Version: params.KeyVersion, Root: root},
	})
	if err != nil {
		return nil, err
	}

	return newInspection(h, size), nil
}

// Reseal writes the sealed recording in src to dst, sealed under the key of target with
// the id keyID ("" for the same id) and the version keyVersion (0 for the next). It does
// not change the body.
func (o Offline) Reseal(dst io.Writer, src io.Reader, target Offline, keyID string,
	keyVersion uint32) (*Inspection, error) {
	var header bytes.Buffer
	old, err := envelope.Inspect(io.TeeReader(src, &header))
	if err != nil {
		return nil, err
	}

	src = io.MultiReader(&header, src)
	if keyID == "" {
		keyID = old.KeyID
	}
	if keyVersion == 0 {
		keyVersion = old.KeyVersion + 1
	}

	root, err := target.newRoot()
	if err != nil {
		return nil, err
	}
	defer root.Wipe()

	h, err := envelope.Rewrap(dst, src, envelope.Expected{}, o.deriveRoot,
		envelope.Key{ID: keyID, Version: keyVersion, Root: root})
	if err != nil {
		return nil, err
	}

	return newInspection(h, 0), nil
}

func (o Offline) newRoot() (*envelope.Root, error) {
	if o.Key == "" || o.Salt == "" {
		return nil, errors.New("a key and a salt are needed")
	}
	return envelope.NewRoot(o.Key, o.Salt, envelope.Iterations)
}

// Inspection is the content of a sealed recording's header.
type Inspection struct {
	RecordingID string `json:"recording_id"`
	AccountID   string `json:"account_id"`
	KeyID       string `json:"key_id"`
	KeyVersion  uint32 `json:"key_version"`
	Algorithm   string `json:"algorithm"`
	Salt        string `json:"salt"` // the recording's own, base64
	Iterations  uint32 `json:"iterations"`
	ContentType string `json:"content_type"`
	CreatedAt   int64  `json:"created_at"`     // Unix seconds
	Size        int64  `json:"size,omitempty"` // bytes of audio, if it was read
}

// Inspect reads a sealed recording's header without a key and without authentication.
func Inspect(src io.Reader) (*Inspection, error) {
	h, err := envelope.Inspect(src)
	if err != nil {
		return nil, err
	}
	return newInspection(h, 0), nil
}

func newInspection(h *envelope.Header, size int64) *Inspection {
	return &Inspection{
		RecordingID: h.RecordingID, AccountID: h.AccountID, KeyID: h.KeyID, KeyVersion: h.KeyVersion,
		Algorithm: h.Suite.String(), Salt: base64.StdEncoding.EncodeToString(h.Salt[:]), Iterations: h.Iterations,
		ContentType: h.ContentType, CreatedAt: h.Created.Unix(), Size: size,
	}
}
