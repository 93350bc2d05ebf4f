package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/recording"
)

// Recordings stores the accounts' call recordings.
type Recordings interface {
	RecordedAudio
	// Metadata returns the metadata of a recording.
	Metadata(ctx context.Context, accountID, recordingID string) (*recording.Metadata, error)
	// List returns a page of at most pageSize recordings (0 for report.DefaultPage). It begins at
	// startKey, the NextStartKey of another page, or at the newest recording for "".
	List(ctx context.Context, accountID string, pageSize int, startKey string) (*recording.Page, error)
}

// RecordedAudio stores and reads the audio.
type RecordedAudio interface {
	// Store stores a new recording, sealed if the account's configuration requires it. A recording
	// that must be sealed and cannot be is not stored.
	Store(ctx context.Context, upload recording.Upload) (*recording.Metadata, error)
	// Open opens a recording, sealed under any version of the key or plain. It authenticates the
	// end of a sealed recording, whose other parts are authenticated when they are read, and
	// compares the digest of a plain one. The audit entry is durable before a byte can be read.
	Open(ctx context.Context, accountID, recordingID string) (*recording.Audio, error)
	// Delete deletes a recording.
	Delete(ctx context.Context, accountID, recordingID string) error
}

type recordingRoutes struct {
	recordings   Recordings
	auth         auth
	stallTimeout time.Duration
}

// account authenticates the caller and returns the account of X-Account-ID. If an API key
// omits the header, it returns the key's own account.
func (r recordingRoutes) account(c echo.Context) (identity.Account, error) {
	caller, err := r.auth.authenticateAny(c)
	if err != nil {
		return identity.Account{}, err
	}
	find := r.auth.namedAccount
	if caller.IsKey() {
		find = r.auth.namedOrOwnAccount
	}
	account, err := find(c, caller)
	if err != nil {
		return identity.Account{}, err
	}
	return account, requireAdmin(caller)
}

// hidden reports whether the caller's role hides the recordings: they name no queue and no
// agent, so a role that is limited to some sees none.
func (r recordingRoutes) hidden(c echo.Context) bool {
	caller := callerOf(c)
	return caller.Role != identity.RoleAuditor && !caller.Sight().Everything()
}

const paramRecording = "recording_id"

func (r recordingRoutes) handleUpload(c echo.Context, account identity.Account) error {
	header := c.Request().Header
	if err := checkEncoding(header); err != nil {
		return err
	}
	if header.Get("Content-Range") != "" {
		return fault.Invalid("A recording is uploaded whole, without Content-Range")
	}
	stored, err := r.recordings.Store(c.Request().Context(), recording.Upload{
		AccountID: account.ID, RecordingID: c.Param(paramRecording),
		ContentType: header.Get("Content-Type"),
		Body:        &uploadReader{body: c.Request().Body, deadline: newReadDeadline(c, r.stallTimeout)},
	})
	return respond(c, http.StatusCreated, stored, err)
}

// handleDownload sends the audio, or the range in the Range header.
func (r recordingRoutes) handleDownload(c echo.Context, account identity.Account) error {
	if r.hidden(c) {
		return fault.NotFound("Recording not found")
	}
	audio, err := r.recordings.Open(c.Request().Context(), account.ID, c.Param(paramRecording))
	if err != nil {
		return err
	}
	defer func() { _ = audio.Close() }() // opened for reading only
	header := c.Response().Header()
	header.Set("Content-Type", audio.ContentType)
	header.Set("ETag", `"`+audio.Digest+`"`)
	content := &errorReader{ReadSeeker: audio}
	writer := newAudioWriter(c, r.stallTimeout)
	http.ServeContent(writer, restoreHead(c.Request()), "", time.Unix(audio.CreatedAt, 0), content)
	if c.Response().Committed && c.Request().Context().Err() != nil {
		return nil // the client closed the connection
	}
	return errors.Join(content.err, writer.finish())
}

// errorReader stores the error of a read, because http.ServeContent does not return it.
type errorReader struct {
	io.ReadSeeker
	err error
}

func (w *errorReader) Read(p []byte) (int, error) {
	n, err := w.ReadSeeker.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

func (r recordingRoutes) handleMetadata(c echo.Context, account identity.Account) error {
	if r.hidden(c) {
		return fault.NotFound("Recording not found")
	}
	found, err := r.recordings.Metadata(c.Request().Context(), account.ID, c.Param(paramRecording))
	return respond(c, http.StatusOK, found, err)
}

func (r recordingRoutes) handleDelete(c echo.Context, account identity.Account) error {
	return noContent(c, r.recordings.Delete(c.Request().Context(), account.ID, c.Param(paramRecording)))
}

func (r recordingRoutes) handleList(c echo.Context, account identity.Account) error {
	q := report.NewQuery(c.QueryParams())
	size, start := q.PageSize(), q.Get("start_key")
	if err := q.Err(); err != nil {
		return err
	}
	if r.hidden(c) {
		return writeJSON(c, http.StatusOK, recording.Page{Data: []recording.Metadata{}, PageSize: size})
	}
	page, err := r.recordings.List(c.Request().Context(), account.ID, size, start)
	return respond(c, http.StatusOK, page, err)
}
