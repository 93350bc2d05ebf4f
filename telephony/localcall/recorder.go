package localcall

import (
	"slices"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// Recorder records the calls that this process connects.
type Recorder interface {
	// PrepareRecording reads, while a call rings, what Record will need of its account. It does not wait.
	PrepareRecording(accountID string)
	// Record returns the recording of a call that is about to be connected. It has not begun. The
	// caller ends it, also if it never begins.
	Record(call RecordedCall) Recording
}

// RecordedCall is a call as its recorder sees it.
type RecordedCall struct {
	AccountID         string
	CallID            string // of the leg whose call record names the recording
	InteractionID     string
	OriginationCallID string   // "" for none
	Direction         string   // "inbound" or "outbound", as in the call record
	OtherIDs          []string // more ids under which the recording is controlled
	CallerNumber      string   // as dialled, "" if unknown
	CalleeNumber      string

	// Port has both voices: the caller's comes from its peer, the callee's is sent to it.
	Port *rtp.Port
}

// Has reports whether it is the account's call with the id.
func (c *RecordedCall) Has(accountID, callID string) bool {
	return c.AccountID == accountID && callID != "" &&
		(c.CallID == callID || c.OriginationCallID == callID || slices.Contains(c.OtherIDs, callID))
}

// Recording is the recording of one call.
type Recording interface {
	// Announcement returns the samples that are to be heard before Begin (Announce), nil for none.
	Announcement() []int16
	// Begin begins to hear the call, whose caller's side has the media.
	Begin(media sip.NegotiatedMedia)
	// SetMedia sets new media of the caller's side.
	SetMedia(media sip.NegotiatedMedia)
	// End ends the recording. It does not wait until it is stored.
	End()
}

// NoRecorder is a Recorder that records nothing.
type NoRecorder struct{}

// PrepareRecording implements Recorder.
func (NoRecorder) PrepareRecording(string) {}

// Record implements Recorder.
func (NoRecorder) Record(RecordedCall) Recording { return noRecording{} }

type noRecording struct{}

func (noRecording) Announcement() []int16        { return nil }
func (noRecording) Begin(sip.NegotiatedMedia)    {}
func (noRecording) SetMedia(sip.NegotiatedMedia) {}
func (noRecording) End()                         {}

// Recorders records each call with all of them.
type Recorders []Recorder

// PrepareRecording implements Recorder.
func (r Recorders) PrepareRecording(accountID string) {
	for _, recorder := range r {
		recorder.PrepareRecording(accountID)
	}
}

// Record implements Recorder.
func (r Recorders) Record(call RecordedCall) Recording {
	all := make(recordings, len(r))
	for i, recorder := range r {
		all[i] = recorder.Record(call)
	}
	return all
}

type recordings []Recording

// Announcement implements Recording: that of the first that has one.
func (r recordings) Announcement() []int16 {
	for _, one := range r {
		pcm := one.Announcement()
		if pcm != nil {
			return pcm
		}
	}
	return nil
}

// Begin implements Recording.
func (r recordings) Begin(media sip.NegotiatedMedia) {
	for _, one := range r {
		one.Begin(media)
	}
}

// SetMedia implements Recording.
func (r recordings) SetMedia(media sip.NegotiatedMedia) {
	for _, one := range r {
		one.SetMedia(media)
	}
}

// End implements Recording.
func (r recordings) End() {
	for _, one := range r {
		one.End()
	}
}
