package recording

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/audit"
	"trunkline/config/callrecording"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// policyTimeout bounds what a call waits for the database before it is connected.
const policyTimeout = 2 * time.Second

// Recorder records the calls that this process connects, as the policies of their accounts say and
// callers of Control want. It implements localcall.Recorder.
type Recorder struct {
	service *Service
	nodes   *redisclient.HolderRequests[Control] // nil: this node is the only one
	log     *slog.Logger

	announcements announcements
	calls         localcall.Calls[*liveCall]
	storing       sync.WaitGroup
}

// NewRecorder returns a recorder of a service with a folder for recordings in progress. nodes is nil
// where this node is the only one.
func NewRecorder(service *Service, nodes *redisclient.HolderRequests[Control]) *Recorder {
	return &Recorder{service: service, nodes: nodes, log: service.log,
		announcements: announcements{objects: service.objects}}
}

// Run carries out what other nodes ask for until ctx ends, and then waits for the recordings to be
// stored: the calls have ended by then.
func (r *Recorder) Run(ctx context.Context) error {
	if r.nodes != nil {
		r.nodes.Answer(ctx, r.controlHere)
	}
	<-ctx.Done()
	r.storing.Wait()
	return nil
}

// liveCall is a call in progress. It implements localcall.Recording.
type liveCall struct {
	localcall.RecordedCall
	recorder            *Recorder
	policy              callrecording.Policy
	announcementSamples []int16 // at localcall.AnnouncementRate, heard before the recording; nil: none, and after Begin

	mu        sync.Mutex
	media     sip.NegotiatedMedia
	begun     bool // Begin was called: the call is connected
	ended     bool
	recording *liveRecording // nil: it is not recorded now
}

// PrepareRecording implements localcall.Recorder: it reads the announcement of the account's calls.
func (r *Recorder) PrepareRecording(accountID string) {
	r.storing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), policyTimeout)
		defer cancel()
		policy, err := r.service.policies.Policy(ctx, accountID)
		if err == nil && policy.Announce && policy.ModeOf("") == callrecording.ModeAll { // else Record logs it
			r.announcements.samplesBefore(ctx, &policy)
		}
	})
}

// Record implements localcall.Recorder.
func (r *Recorder) Record(call localcall.RecordedCall) localcall.Recording {
	c := &liveCall{RecordedCall: call, recorder: r}
	ctx, cancel := context.WithTimeout(context.Background(), policyTimeout)
	defer cancel()

	policy, err := r.service.policies.Policy(ctx, call.AccountID)
	if err != nil {
		r.service.metrics.refused.Inc()
		r.log.Error("a call is not recorded: its account's policy cannot be read", "account_id", call.AccountID,
			"call_id", call.CallID, "error", err)
	}

	c.policy = policy
	if policy.Announce && c.mode() == callrecording.ModeAll {
		// Before the call is connected: its parties hear it first, and are recorded from Begin on.
		c.announcementSamples = r.announcements.samplesBefore(ctx, &policy)
	}

	r.calls.Add(c)
	return c
}

// mode returns the mode of the call. Calls of this process are in no queue.
func (c *liveCall) mode() callrecording.Mode { return c.policy.ModeOf("") }

// Announcement implements localcall.Recording.
func (c *liveCall) Announcement() []int16 { return c.announcementSamples }

// Begin implements localcall.Recording.
func (c *liveCall) Begin(media sip.NegotiatedMedia) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.media, c.begun, c.announcementSamples = media, true, nil
	if c.mode() == callrecording.ModeAll {
		c.start()
	}
}

// start begins a recording. The caller holds mu.
func (c *liveCall) start() *liveRecording {
	rec := c.recorder.service.newLiveRecording(c.AccountID, Call{
		CallID: c.CallID, InteractionID: c.InteractionID, OriginationCallID: c.OriginationCallID,
		Direction: c.Direction, StartedAt: time.Now().Unix(),
	})
	// All of it before AddTap, from which on packets come.
	rec.useMedia(c.media)
	rec.pauseKeys.sequence = c.recorder.service.settings.PauseKeys

	rec.onKeys = func() {
		if !rec.beginPause() {
			rec.resume()
		}
	}

	c.recording = rec
	c.Port.AddTap(rec)
	c.recorder.storing.Go(func() { c.runRecording(rec) })

	return rec
}

// runRecording writes a recording until it is stopped, and stores it.
func (c *liveCall) runRecording(rec *liveRecording) {
	r := c.recorder
	log := r.log.With("account_id", c.AccountID, "call_id", c.CallID)
	err := rec.run()
	if err != nil {
		log.Error("a call is not recorded", "error", err)
		c.drop(rec)
		return
	}

	name := rec.journal.file.Name()
	err = rec.journal.file.Close()
	if err == nil {
		// Not under the call's context: a recording is stored also while the process ends, see Run.
		err = r.service.storeJournalFile(context.Background(), name)
	}
	if err != nil { // it is tried again
		log.Error("storing the recording of a call failed, retrying", "error", err)
		return
	}

	r.service.wake()
}

// drop ends a recording that could not begin.
func (c *liveCall) drop(rec *liveRecording) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The call may have begun another one meanwhile.
	if c.recording == rec {
		c.stop()
	}
}

// SetMedia implements localcall.Recording.
func (c *liveCall) SetMedia(media sip.NegotiatedMedia) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.media = media
	if c.recording != nil {
		c.recording.useMedia(media)
	}
}

// stop ends the recording in progress, if there is one. The caller holds mu.
func (c *liveCall) stop() {
	if c.recording == nil {
		return
	}
	c.recording.stop()
	c.Port.RemoveTap(c.recording)
	c.recording = nil
}

// End implements localcall.Recording.
func (c *liveCall) End() {
	c.mu.Lock()
	c.ended = true
	c.stop()
	c.mu.Unlock()
	c.recorder.calls.Remove(c)
}

// Control is an action on the recording of a call in progress.
type Control struct {
	AccountID string `json:"account_id"`
	CallID    string `json:"call_id"`
	Action    string `json:"action"` // start, stop, pause or resume
}

// Control does an action on any node, with an entry of the audit log. Returns fault.KindNotFound for a
// call that Trunkline does not connect, and fault.KindConflict where its account's mode or the recording's
// state does not allow it.
func (r *Recorder) Control(ctx context.Context, control Control) error {
	entry := r.service.audit.Entry(ctx, audit.CallRecord, control.AccountID, control.Action+":"+control.CallID)
	return r.service.audit.Act(ctx, &entry, func() error {
		err := r.controlHere(ctx, control)
		// Only the node that connects the call has it.
		if fault.KindOf(err) == fault.KindNotFound && r.nodes != nil {
			err = r.nodes.Ask(ctx, control, err)
		}
		return err
	})
}

// controlHere is Control for the calls of this node, without the entry.
func (r *Recorder) controlHere(ctx context.Context, control Control) error {
	c := r.calls.Find(control.AccountID, control.CallID)
	if c == nil {
		return fault.NotFound("there is no such call in progress")
	}
	started, err := c.apply(control.Action)
	if err != nil || started == nil {
		return err
	}
	// Outside the lock: the journal may wait for a key, and the call's end for the lock.
	return started.awaitOpen(ctx)
}

// apply does an action. It returns the recording that it started, nil for none.
func (c *liveCall) apply(action string) (started *liveRecording, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.mode() == callrecording.ModeOff {
		return nil, fault.Conflict("the account's calls are not recorded: its mode is off")
	}
	if !c.begun || c.ended {
		return nil, fault.Conflict("the call is not connected")
	}

	switch action {
	case "start":
		if c.recording != nil {
			return nil, fault.Conflict("the call is being recorded")
		}
		return c.start(), nil
	case "stop":
		if c.recording == nil {
			return nil, errNotRecorded()
		}
		c.stop()
	case "pause":
		if c.recording == nil || !c.recording.beginPause() {
			return nil, errNotRecorded()
		}
	case "resume":
		if c.recording == nil || !c.recording.resume() {
			return nil, fault.Conflict("the recording is not paused")
		}
	default:
		return nil, fault.InvalidField("action", "unsupported", "action must be start, stop, pause or resume")
	}

	return nil, nil
}

func errNotRecorded() error { return fault.Conflict("the call is not being recorded") }
