package recording

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"trunkline/config/callrecording"
	"trunkline/internal/fault"
	"trunkline/recording/envelope"
	"trunkline/telephony/audio"
	"trunkline/telephony/localcall"
)

const (
	// maxAnnouncementDuration bounds how long a call waits for its recording to be announced.
	maxAnnouncementDuration = 30 * time.Second
	// The tone that announces a recording where the policy names none of the account's recordings.
	toneTime  = 400 * time.Millisecond
	toneHertz = 425
	toneLevel = 4000 // amplitude, of 32767
)

// CheckAnnouncement returns fault.KindInvalid with the field announcement for a recording that the account
// does not have, or that cannot announce recordings.
func (r *Recorder) CheckAnnouncement(ctx context.Context, accountID, recordingID string) error {
	_, err := r.announcements.keptSamples(ctx, accountID, recordingID)
	switch fault.KindOf(err) {
	case fault.KindNotFound, fault.KindInvalid, fault.KindUnsupported:
		return fault.InvalidField("announcement", "invalid", "announcement cannot be used: "+fault.As(err).Message)
	}
	return err
}

// HoldAnnouncement puts a legal hold on a recording that a policy names as announcement, unless it has one: nothing
// deletes it while calls are announced with it.
func (r *Recorder) HoldAnnouncement(ctx context.Context, accountID, recordingID string) error {
	found, err := r.service.Metadata(ctx, accountID, recordingID)
	if err != nil || found.Hold != nil {
		return err
	}
	_, err = r.service.Hold(ctx, accountID, recordingID, "it announces recordings")
	return err
}

// samplesBefore returns what is heard before a recording, at localcall.AnnouncementRate: the recording that the policy
// names, or a tone.
func (a *announcements) samplesBefore(ctx context.Context, policy *callrecording.Policy) []int16 {
	if policy.Announcement != "" {
		pcm, err := a.keptSamples(ctx, policy.PolicyAccount, policy.Announcement)
		if err == nil {
			return pcm
		}
		a.objects.log.ErrorContext(ctx, "announcement of recordings cannot be read, a tone takes its place",
			"account_id", policy.PolicyAccount, "recording_id", policy.Announcement, "error", err)
	}

	tone := make([]int16, localcall.AnnouncementRate*toneTime/time.Second)
	for i := range tone {
		tone[i] = int16(toneLevel * math.Sin(2*math.Pi*toneHertz*float64(i)/localcall.AnnouncementRate))
	}

	return tone
}

// maxAnnouncements is the number of announcements kept in memory: at most 15 MB for all.
const maxAnnouncements = 32

// announcements keeps the samples of the announcements that were used last, so that a call does not wait until one
// is opened and its account's key is derived. It is safe for concurrent use.
type announcements struct {
	objects *objects

	mu   sync.Mutex
	kept []*keptAnnouncement // used last first
}

type keptAnnouncement struct {
	accountID, digest string                  // Metadata of the recording
	read              func() ([]int16, error) // reads it once; those who come meanwhile wait
}

// find returns the announcement, used last; add makes one that is not kept.
func (a *announcements) find(accountID, digest string, add func() ([]int16, error)) *keptAnnouncement {
	a.mu.Lock()
	defer a.mu.Unlock()

	i := slices.IndexFunc(a.kept, func(k *keptAnnouncement) bool {
		return k.accountID == accountID && k.digest == digest
	})
	found := &keptAnnouncement{accountID: accountID, digest: digest, read: sync.OnceValues(add)}

	if i >= 0 {
		found = a.kept[i]
		a.kept = slices.Delete(a.kept, i, i+1)
	}

	a.kept = slices.Insert(a.kept[:min(len(a.kept), maxAnnouncements-1)], 0, found)
	return found
}

// forget removes an announcement that could not be read, so that the next call tries again.
func (a *announcements) forget(one *keptAnnouncement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = slices.DeleteFunc(a.kept, func(k *keptAnnouncement) bool { return k == one })
}

// keptSamples is readAnnouncement through memory. The row decides: what is deleted is not heard any more.
func (a *announcements) keptSamples(ctx context.Context, accountID, recordingID string) ([]int16, error) {
	found, err := a.objects.rows.find(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}

	// By its digest: a recording that was stored again under the same id is another one.
	one := a.find(accountID, found.Digest, func() ([]int16, error) {
		return a.objects.readAnnouncement(ctx, accountID, recordingID)
	})
	pcm, err := one.read()
	if err != nil {
		a.forget(one)
	}

	return pcm, err
}

// readAnnouncement returns the samples of a recording as one channel at localcall.AnnouncementRate.
func (o *objects) readAnnouncement(ctx context.Context, accountID, recordingID string) ([]int16, error) {
	if !envelope.ValidID(recordingID) {
		return nil, noRecording(recordingID)
	}

	file, err := o.openStored(ctx, accountID, recordingID)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading

	wav, err := audio.NewWAV(file)
	if err != nil {
		return nil, notWAV(err)
	}

	resampler, err := audio.NewResampler(wav.Rate, localcall.AnnouncementRate)
	if err != nil {
		return nil, notWAV(err)
	}

	most := wav.Channels * wav.Rate * int(maxAnnouncementDuration/time.Second)
	// One sample more tells a longer recording.
	interleaved := make([]int16, most+1)
	n, err := wav.Read(interleaved)
	if err != nil {
		return nil, err
	}

	if n == 0 || n > most {
		return nil, fault.Invalid(fmt.Sprintf("it must be of at most %v", maxAnnouncementDuration))
	}

	mono := interleaved[:0]
	for i := 0; i < n; i += wav.Channels {
		mono = append(mono, int16((int(interleaved[i])+int(interleaved[i+wav.Channels-1]))/2))
	}

	if wav.Rate == localcall.AnnouncementRate {
		return mono, nil
	}

	return resampler.Process(nil, mono), nil
}
