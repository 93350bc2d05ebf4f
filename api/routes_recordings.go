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
	// Hold puts a legal hold on a recording: until EndHold nothing deletes it.
	Hold(ctx context.Context, accountID, recordingID, reason string) (*recording.Metadata, error)
	// EndHold ends the legal hold of a recording, if it has one.
	EndHold(ctx context.Context, accountID, recordingID string) error
	// List returns a page of the filter's recordings, newest first.
	List(ctx context.Context, f recording.Filter) (*recording.Page, error)
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
	// Delete deletes a recording. Returns fault.KindConflict for one with a legal hold.
	Delete(ctx context.Context, accountID, recordingID string) error
}

type recordingRoutes struct {
	recordings   Recordings
	auth         auth
	visibility   rowVisibility
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

// visibleRows returns which recordings of the account the caller sees, nil for all. An auditor
// sees the metadata of all.
func (r recordingRoutes) visibleRows(c echo.Context, account identity.Account) (*report.Visible, error) {
	if callerOf(c).Role == identity.RoleAuditor {
		return nil, nil
	}
	return r.visibility.ofCaller(c, account)
}

// findVisible returns the metadata of the request's recording, if the caller sees it.
func (r recordingRoutes) findVisible(c echo.Context, account identity.Account) (*recording.Metadata, error) {
	seen, err := r.visibleRows(c, account)
	if err != nil {
		return nil, err
	}

	found, err := r.recordings.Metadata(c.Request().Context(), account.ID, c.Param(paramRecording))
	if err != nil {
		return nil, err
	}

	if !seen.Admits(found.QueueID, found.AgentID) {
		return nil, fault.NotFound("there is no recording %s", found.RecordingID)
	}

	return found, nil
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

	id, call, err := recording.ParseUpload(c.Param(paramRecording), c.QueryParams(), header)
	if err != nil {
		return err
	}

	stored, err := r.recordings.Store(c.Request().Context(), recording.Upload{
		AccountID: account.ID, RecordingID: id, Call: call,
		ContentType: header.Get("Content-Type"),
		Body:        &uploadReader{body: c.Request().Body, deadline: newReadDeadline(c, r.stallTimeout)},
	})

	return respond(c, http.StatusCreated, stored, err)
}

// handleDownload sends the audio, or the range in the Range header; with format=opus the whole audio as Ogg Opus.
func (r recordingRoutes) handleDownload(c echo.Context, account identity.Account) error {
	format := c.QueryParam("format")
	if format != "" && format != "opus" {
		return fault.InvalidField("format", "unsupported",
			"format must be opus, or absent for the audio as it is stored")
	}

	// Before Open, which writes to the audit log that the caller has read the recording.
	_, err := r.findVisible(c, account)
	if err != nil {
		return err
	}

	audio, err := r.recordings.Open(c.Request().Context(), account.ID, c.Param(paramRecording))
	if err != nil {
		return err
	}
	defer func() { _ = audio.Close() }() // opened for reading only

	if format != "" && audio.ContentType != recording.OpusType {
		return r.sendOpus(c, audio)
	}

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

// sendOpus sends the audio as Ogg Opus while it is encoded: its length is not known, and there are no ranges.
func (r recordingRoutes) sendOpus(c echo.Context, audio *recording.Audio) error {
	opus, err := audio.Opus(c.Request().Context())
	if err != nil {
		return err
	}

	c.Response().Header().Set("Content-Type", recording.OpusType)
	writer := newAudioWriter(c, r.stallTimeout)
	writer.WriteHeader(http.StatusOK)

	if restoreHead(c.Request()).Method == http.MethodHead {
		return writer.finish()
	}

	_, err = io.Copy(writer, opus)
	if c.Request().Context().Err() != nil {
		return nil // the client closed the connection
	}

	return errors.Join(err, writer.finish())
}

// errorReader stores the error of a read, because http.ServeContent does not return it.
type errorReader struct {
	io.ReadSeeker
	err error
}

func (r *errorReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func (r recordingRoutes) handleMetadata(c echo.Context, account identity.Account) error {
	found, err := r.findVisible(c, account)
	return respond(c, http.StatusOK, found, err)
}

func (r recordingRoutes) handleDelete(c echo.Context, account identity.Account) error {
	return noContent(c, r.recordings.Delete(c.Request().Context(), account.ID, c.Param(paramRecording)))
}

func (r recordingRoutes) handleHold(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	reason := body.String("reason", required)
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	held, err := r.recordings.Hold(c.Request().Context(), account.ID, c.Param(paramRecording), reason)
	return respond(c, http.StatusOK, held, err)
}

func (r recordingRoutes) handleEndHold(c echo.Context, account identity.Account) error {
	return noContent(c, r.recordings.EndHold(c.Request().Context(), account.ID, c.Param(paramRecording)))
}

func (r recordingRoutes) handleList(c echo.Context, account identity.Account) error {
	filter, err := recording.ParseFilter(c.QueryParams())
	if err != nil {
		return err
	}

	filter.Account = account.ID
	filter.Visible, err = r.visibleRows(c, account)
	if err != nil {
		return err
	}

	page, err := r.recordings.List(c.Request().Context(), filter)
	return respond(c, http.StatusOK, page, err)
}
