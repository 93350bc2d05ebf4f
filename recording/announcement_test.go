package recording

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/telephony/localcall"
)

// Before a call is recorded its parties hear the recording that the policy names, and a tone where it cannot be read.
func TestTheAnnouncementOfARecording(t *testing.T) {
	h, recorder := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "head", encryption.Change{Enabled: true, Key: new(firstKey)})
	spoken := wavHeader(16000)

	for i := range 16000 {
		spoken = binary.LittleEndian.AppendUint16(spoken, uint16(1000+i%100))
		spoken = binary.LittleEndian.AppendUint16(spoken, uint16(3000+i%100))
	}

	must(h.Store(t.Context(), Upload{AccountID: "head", RecordingID: "greeting", Body: bytes.NewReader(spoken)}))(t)
	heard := func(mode callrecording.Mode, announce bool, id string) []int16 {
		h.policies = onePolicy{Mode: mode, Announce: announce, Announcement: id, PolicyAccount: "head"}
		recording := recorder.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1"})
		defer recording.End()
		return recording.Announcement()
	}

	pcm := heard(callrecording.ModeAll, true, "greeting")
	if len(pcm) != 16000 || pcm[0] != 2000 || pcm[99] != 2099 {
		t.Errorf("%d samples", len(pcm))
	}

	for _, id := range []string{"", "gone"} {
		if tone := heard(callrecording.ModeAll, true, id); len(tone) != 3200 || tone[0] != 0 || tone[5] < 2000 {
			t.Errorf("%q: %d samples", id, len(tone))
		}
	}

	if heard(callrecording.ModeAll, false, "") != nil || heard(callrecording.ModeOnDemand, true, "greeting") != nil {
		t.Error("an announcement without a recording")
	}

	check(t, recorder.CheckAnnouncement(t.Context(), "head", "greeting"))
	check(t, recorder.HoldAnnouncement(t.Context(), "head", "greeting"))
	if err := h.Delete(t.Context(), "head", "greeting"); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("deleting it: %v", err)
	}

	must(h.Hold(t.Context(), "head", "greeting", "case 7"))(t)
	check(t, recorder.HoldAnnouncement(t.Context(), "head", "greeting"))
	if m := must(h.Metadata(t.Context(), "head", "greeting"))(t); m.Hold == nil || m.Hold.Reason != "case 7" {
		t.Errorf("another hold was changed: %+v", m.Hold)
	}
	if err := recorder.CheckAnnouncement(t.Context(), "acme", "greeting"); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("of another account: %v", err)
	}
}

// openCounter counts how often objects are opened; while shut, opening fails.
type openCounter struct {
	Store
	opened atomic.Int32
	shut   atomic.Bool
}

func (o *openCounter) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	o.opened.Add(1)
	if o.shut.Load() {
		return nil, errors.New("the store is away")
	}
	return o.Store.Open(ctx, name)
}

// An announcement is read while the first call rings, and once for all calls, until another recording has its name.
func TestAnAnnouncementIsReadOnce(t *testing.T) {
	h, recorder := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "head", encryption.Change{Enabled: true, Key: new(firstKey)})
	h.policies = onePolicy{Mode: callrecording.ModeAll, Announce: true, Announcement: "greeting", PolicyAccount: "head"}
	store := &openCounter{Store: h.Service.objects.store}
	h.Service.objects.store = store

	speak := func(level uint16) {
		spoken := wavHeader(8000)
		for range 16000 {
			spoken = binary.LittleEndian.AppendUint16(spoken, level)
		}
		must(h.Store(t.Context(), Upload{AccountID: "head", RecordingID: "greeting", Body: bytes.NewReader(spoken)}))(t)
	}

	heard := func() int16 {
		recording := recorder.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1"})
		defer recording.End()
		return recording.Announcement()[0]
	}

	speak(1000)
	store.shut.Store(true)
	if heard() != 0 {
		t.Error("no tone while the store is away")
	}

	store.shut.Store(false)

	store.opened.Store(0)
	for range 20 { // they ring at once
		recorder.PrepareRecording("acme")
	}

	recorder.storing.Wait()
	store.shut.Store(true)
	for range 3 {
		if level := heard(); level != 1000 {
			t.Errorf("heard %d", level)
		}
	}

	if n := store.opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}

	store.shut.Store(false)
	check(t, h.Delete(t.Context(), "head", "greeting"))
	if heard() != 0 {
		t.Error("a deleted announcement is heard")
	}

	speak(2000)
	if level := heard(); level != 2000 {
		t.Errorf("heard %d", level)
	}

	for i := range maxAnnouncements + 5 {
		recorder.announcements.find("head", fmt.Sprint(i), func() ([]int16, error) { return nil, nil })
	}

	if n := len(recorder.announcements.kept); n != maxAnnouncements {
		t.Errorf("%d announcements are kept", n)
	}
}
