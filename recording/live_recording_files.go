package recording

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/recording/envelope"
)

const (
	liveFileSuffix = ".take"
	// abandonedAfter is the age of a journal that no process writes any more.
	abandonedAfter = 10 * time.Second
	// openTimeout bounds how long a journal opens. What is heard meanwhile is queued.
	openTimeout = 8 * time.Second
)

// journalName returns the file of a recording in progress.
func (s *Service) journalName(accountID, recordingID string) string {
	return filepath.Join(s.liveDir, recordingID+"@"+accountID+liveFileSuffix)
}

// newLiveRecording returns a recording of a call in progress, which begins now. Its journal has a free id and is
// sealed as the account's configuration says when it opens.
func (s *Service) newLiveRecording(accountID string, call Call) *liveRecording {
	return newLiveRecording(func(ctx context.Context) (*journal, error) {
		if s.liveDir == "" {
			return nil, fault.Unavailable(nil, 0, "this node does not record calls")
		}

		select {
		case s.openers <- struct{}{}:
			defer func() { <-s.openers }()
		case <-ctx.Done():
			return nil, fault.Unavailable(ctx.Err(), retryAfter, "too many recordings begin at once")
		}

		if err := s.requireFreeSpace(); err != nil {
			return nil, err
		}
		if err := s.usage.requireQuota(ctx, accountID); err != nil {
			return nil, err
		}

		sealer, err := s.seals.forNew(ctx, accountID)
		if err != nil {
			s.metrics.refused.Inc()
			return nil, err
		}

		return s.createJournal(ctx, accountID, call, sealer)
	}, s.writers, s.log)
}

// createJournal creates the journal of a call under a free id.
func (s *Service) createJournal(ctx context.Context, accountID string, call Call,
	sealer *recordingSealer) (*journal, error) {
	if err := os.MkdirAll(s.liveDir, 0o700); err != nil {
		return nil, fileError(err, "creating the folder of recordings in progress")
	}

	d := liveRecordingDescription{AccountID: accountID, Call: call}
	var params envelope.Params
	if sealer != nil {
		d.Sealed, d.Algorithm, d.KeyVersion = true, sealer.suite.String(), int64(sealer.key.Version)
		params = envelope.Params{Suite: sealer.suite, ContentType: "audio/L16", Key: sealer.key}
	}

	params.AccountID, params.Created = accountID, time.Now().UTC()

	for attempt := 1; ; attempt++ {
		d.RecordingID = liveRecordingID(call.CallID, attempt)
		params.RecordingID = d.RecordingID
		j, err := createJournal(s.journalName(accountID, d.RecordingID), d, sealer, params)
		// Another recording of the call is in progress, or waits to be stored.
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}

		// A journal that ends becomes a row before it is removed: only now nobody else can take the id.
		idInUse, err := s.rows.exists(ctx, accountID, d.RecordingID)
		if err == nil && !idInUse {
			return j, nil
		}

		err = errors.Join(err, j.file.Close(), os.Remove(j.file.Name()))
		if err != nil {
			return nil, err
		}
	}
}

// liveRecordingID returns the id of a call's recording: the call's id, from the second on with a number.
func liveRecordingID(callID string, attempt int) string {
	id := strings.Map(func(r rune) rune {
		if r < 128 && envelope.ValidID("x"+string(r)) {
			return r
		}
		return '_'
	}, callID)

	id = strings.TrimLeft(id, ".")
	id = id[:min(len(id), 120)]
	if attempt > 1 || id == "" {
		id += fmt.Sprintf("-%d", attempt)
	}

	return id
}

// storeJournalFile stores a recording whose journal is complete, and removes the journal. A journal that ended before
// its description has nothing to store.
func (s *Service) storeJournalFile(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fileError(err, "opening a recording in progress")
	}
	defer func() { _ = file.Close() }() // opened for reading

	r, err := openJournal(file)
	if errors.Is(err, errNoDescription) {
		s.log.WarnContext(ctx, "recording lost: its process was killed before it began", "file", filepath.Base(name))
		return removeLiveRecording(name)
	}
	if err != nil {
		return err
	}

	d := &r.description
	call := d.Call
	call.DurationMS, call.Channels = millis(r.samples), channelCount
	u := Upload{AccountID: d.AccountID, RecordingID: d.RecordingID, ContentType: "audio/wav", Call: call,
		Pauses: r.pauses}

	for attempt := 1; ; {
		stored, err := s.rows.find(ctx, u.AccountID, u.RecordingID)
		switch {
		case err == nil && isSameLiveRecording(stored, &u): // a crash between the row and the removal
			return removeLiveRecording(name)
		case err == nil: // somebody has uploaded another recording under the id
			attempt++
			u.RecordingID = liveRecordingID(call.CallID, attempt)
			continue
		case fault.KindOf(err) != fault.KindNotFound:
			return err
		}

		err = s.storeJournal(ctx, r, u)
		if err == nil {
			return removeLiveRecording(name)
		}
		if fault.KindOf(err) != fault.KindConflict { // else an upload was first
			return err
		}
	}
}

func removeLiveRecording(name string) error {
	return fileError(ignoreMissing(os.Remove(name)), "removing the file of a recording in progress")
}

// isSameLiveRecording reports whether a row is that of a live recording. Its digest does not tell: the format may be
// another one since.
func isSameLiveRecording(stored *row, u *Upload) bool {
	return stored.CallID == u.Call.CallID && stored.StartedAt == u.Call.StartedAt &&
		stored.DurationMS == u.Call.DurationMS && stored.Channels == u.Call.Channels &&
		slices.Equal(stored.Pauses, u.Pauses)
}

// storeJournal stores the audio of a journal as u says.
func (s *Service) storeJournal(ctx context.Context, r *journalReader, u Upload) error {
	if err := r.rewind(); err != nil {
		return err
	}

	d := &r.description
	// With the key with which it began: the account may have another one since.
	sealer, err := s.seals.ofJournal(ctx, d)
	if err != nil {
		return err
	}

	r.rootOf = func(h *envelope.Header) (*envelope.Root, error) { return s.seals.root(ctx, d.AccountID, h) }

	u.Body = r
	if s.settings.Format == formatOpus {
		// Encoded only here: a call in progress has no time for it.
		u.ContentType = OpusType
		u.Body, err = newOpus(ctx, s.objects.encoders, r)
		if err != nil {
			return err
		}
	}

	// Without recordings.max_bytes, which is for uploads: a call that was recorded is stored.
	row, err := s.writeObject(ctx, &u, sealer, 0)
	if err != nil {
		return err
	}

	return s.createRow(ctx, row)
}

// storeAbandoned stores the recordings of calls whose process was killed, and those that could not
// be stored when they ended.
func (s *Service) storeAbandoned(ctx context.Context) error {
	if s.liveDir == "" {
		return nil
	}

	names, err := filepath.Glob(filepath.Join(s.liveDir, "*"+liveFileSuffix))
	if err != nil {
		return err
	}

	var failures error
	for _, name := range names {
		info, err := os.Stat(name)
		// One that is written has a record each writeInterval.
		if err != nil || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}

		err = s.storeJournalFile(ctx, name)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", filepath.Base(name), err))
		}
	}

	return failures
}
