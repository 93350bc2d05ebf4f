package recording

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

// writeJournalOfCall writes the journal of a call of five seconds, as a process that was killed has left it, and
// returns its file.
func writeJournalOfCall(t *testing.T, h *env, call string) (name string) {
	t.Helper()
	live := openLive(t, h.newLiveRecording("acme", Call{CallID: call, StartedAt: 1_700_000_000}))
	live.useMedia(pcmu())
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 250 {
		live.setPresent(time.Duration(n) * 20 * time.Millisecond)
		live.Received(caller.next())
	}

	live.flush(8000 * 5)
	check(t, live.journal.file.Close())
	return live.journal.file.Name()
}

// makeOld makes a journal one that no process writes any more.
func makeOld(t *testing.T, name string) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	check(t, os.Chtimes(name, old, old))
}

// A recording that somebody uploads under the id of a call in progress does not take the call's place. After a crash
// between row and removal the call is there once, whatever its id.
func TestAnUploadUnderTheIDOfACallLosesNothing(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	name := writeJournalOfCall(t, h, "call")
	journal := must(os.ReadFile(name))(t)
	must(h.storeAudio("acme", "call", testAudio(1000)))(t)

	for range 2 {
		check(t, h.storeJournalFile(t.Context(), name))
		if left := must(os.ReadDir(h.liveDir))(t); len(left) != 0 {
			t.Errorf("left are %v", left)
		}
		if m := must(h.Metadata(t.Context(), "acme", "call"))(t); m.Size != 1000 {
			t.Errorf("the upload is %+v", m)
		}
		if m := must(h.Metadata(t.Context(), "acme", "call-2"))(t); m.DurationMS != 5000 || m.CallID != "call" {
			t.Errorf("the call is %+v", m)
		}
		if _, err := h.Metadata(t.Context(), "acme", "call-3"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("a third recording: %v", err)
		}

		check(t, os.WriteFile(name, journal, 0o600))
	}
}

// recordings.max_bytes is for uploads: a long call is stored.
func TestALongCallIsStored(t *testing.T) {
	h := newEnv(t, Settings{MaxBytes: 10_000}, testdb.SQLite(t))
	h.policies, h.liveDir = onePolicy{Mode: callrecording.ModeAll}, filepath.Join(t.TempDir(), "in-progress")
	if _, err := h.storeAudio("acme", "upload", testAudio(10_001)); fault.KindOf(err) != fault.KindTooLarge {
		t.Errorf("a large upload: %v", err)
	}

	check(t, h.storeJournalFile(t.Context(), writeJournalOfCall(t, h, "long")))
	if m := must(h.Metadata(t.Context(), "acme", "long"))(t); m.Size != 44+5*8000*bytesPerSample {
		t.Errorf("%+v", m)
	}
}

// A power loss leaves zeros behind what was written, or a part of a record: the journal ends there.
func TestAJournalEndsAtABrokenRecord(t *testing.T) {
	for tail, bytes := range map[string]string{
		"zeros":        string(make([]byte, 5000)),
		"another kind": "x\x00\x00\x00\x01\x00\x00\x00\x00y",
		// Audio is behind it, which the length of the file does not tell.
		"broken pause": "p\x00\x00\x00\x02\x00\x00\x00\x00{{a\x00\x00\x00\x04\x00\x00\x00\x01abcd",
	} {
		h, _ := newLiveEnv(t, callrecording.ModeAll)
		name := writeJournalOfCall(t, h, "c1")
		check(t, os.WriteFile(name, append(must(os.ReadFile(name))(t), bytes...), 0o600))
		makeOld(t, name)
		if err := h.storeAbandoned(t.Context()); err != nil {
			t.Errorf("%s: %v", tail, err)
			continue
		}

		m := must(h.Metadata(t.Context(), "acme", "c1"))(t)
		if m.DurationMS != 5000 || m.Size != 44+5*8000*bytesPerSample {
			t.Errorf("%s: %+v", tail, m)
		}
	}
}

// A process that was killed before its journal had a description has nothing to store, and no warning each minute.
func TestAJournalWithoutADescriptionIsRemoved(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	check(t, os.MkdirAll(h.liveDir, 0o700))
	for id, text := range map[string]string{"empty": "", "torn": "d\x00\x00", "zeros": string(make([]byte, 500))} {
		name := h.journalName("acme", id)
		check(t, os.WriteFile(name, []byte(text), 0o600))
		makeOld(t, name)
	}

	check(t, h.storeAbandoned(t.Context()))
	if left := must(os.ReadDir(h.liveDir))(t); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// A process that is killed has written all but the last second, readable and authentic.
func TestAKilledProcessKeepsWhatItRecorded(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	live := openLive(t, h.newLiveRecording("acme", Call{CallID: "killed"}))
	live.useMedia(pcmu())
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 500 { // ten seconds
		live.setPresent(time.Duration(n) * 20 * time.Millisecond)
		live.Received(caller.next())
		if n%25 == 24 {
			live.flush(live.now() - samples(maxPacketDelay))
		}
	}

	name := live.journal.file.Name()
	check(t, live.journal.file.Close())
	whole := must(os.ReadFile(name))(t)
	check(t, os.WriteFile(name, whole[:len(whole)-5], 0o600)) // the kill cut off a write
	old := time.Now().Add(-time.Minute)
	check(t, os.Chtimes(name, old, old))
	check(t, h.storeAbandoned(t.Context()))
	m := must(h.Metadata(t.Context(), "acme", "killed"))(t)
	if !m.Encrypted || m.DurationMS < 8000 {
		t.Errorf("%+v", m)
	}

	for n, level := range loudness(must(h.play("acme", "killed"))(t), channelCaller) {
		if level == 0 {
			t.Errorf("silence at %d ms", n*20)
		}
	}

	// An altered journal is not stored, and stays.
	altered := bytes.Clone(whole)
	altered[len(altered)/2] ^= 1
	check(t, os.WriteFile(name, altered, 0o600))
	check(t, os.Chtimes(name, old, old))

	if err := h.storeAbandoned(t.Context()); err == nil {
		t.Error("an altered journal is stored")
	}

	checkError(t)(os.Stat(name))
}

// With the format opus a recording is stored as Ogg Opus, sealed, of the same length.
func TestARecordingIsStoredAsOpus(t *testing.T) {
	h := newEnv(t, Settings{Format: "opus"}, testdb.SQLite(t))
	h.policies, h.liveDir = onePolicy{Mode: callrecording.ModeAll}, filepath.Join(t.TempDir(), "in-progress")
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	live := openLive(t, h.newLiveRecording("acme", Call{CallID: "c1"}))
	live.useMedia(pcmu())
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 250 { // five seconds
		live.setPresent(time.Duration(n) * 20 * time.Millisecond)
		live.Received(caller.next())
	}

	live.flush(8000 * 5)
	check(t, live.journal.file.Close())
	check(t, h.storeJournalFile(t.Context(), live.journal.file.Name()))
	m := must(h.Metadata(t.Context(), "acme", "c1"))(t)
	if m.ContentType != "audio/ogg" || !m.Encrypted || m.DurationMS != 5000 || m.Channels != 2 || m.Size > 5*8000 {
		t.Errorf("%+v", m)
	}
	if audio := must(h.play("acme", "c1"))(t); !bytes.HasPrefix(audio, []byte("OggS")) || int64(len(audio)) != m.Size {
		t.Errorf("%d bytes: %.20q", len(audio), audio)
	}
}
