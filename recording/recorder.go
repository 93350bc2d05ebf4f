package recording

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/audit"
	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// startTimeout bounds what a call waits for the database before it is connected.
const startTimeout = 2 * time.Second

// Recorder records the calls that this process connects, as the policies of their accounts say and
// callers of Control want. It implements localcall.Recorder.
type Recorder struct {
	service *Service
	log     *slog.Logger

	mu      sync.Mutex
	calls   map[*liveCall]struct{}
	storing sync.WaitGroup
}

// NewRecorder returns a recorder of a service with a folder for recordings in progress.
func NewRecorder(service *Service) *Recorder {
	return &Recorder{service: service, log: service.log, calls: make(map[*liveCall]struct{})}
}

// Run waits for ctx to end and then for the recordings of calls that have ended to be stored.
func (r *Recorder) Run(ctx context.Context) error {
	<-ctx.Done()
	r.storing.Wait()
	return nil
}

// liveCall is a call in progress. It implements localcall.Recording.
type liveCall struct {
	localcall.RecordedCall
	recorder *Recorder
	policy   callrecording.Policy

	mu    sync.Mutex
	media sip.NegotiatedMedia
	begun bool
	ended bool
	take  *take // nil: it is not recorded now
}

// Record implements localcall.Recorder.
func (r *Recorder) Record(call localcall.RecordedCall) localcall.Recording {
	c := &liveCall{RecordedCall: call, recorder: r}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	policy, err := r.service.policies.Policy(ctx, call.AccountID)
	if err != nil {
		r.service.metrics.refused.Inc()
		r.log.Error("a call is not recorded: its account's policy cannot be read", "account_id", call.AccountID, "call_id", call.CallID, "error", err)
	}
	c.policy = policy
	r.mu.Lock()
	r.calls[c] = struct{}{}
	r.mu.Unlock()
	return c
}

// mode returns the mode of the call. Calls of this process are in no queue.
func (c *liveCall) mode() callrecording.Mode { return c.policy.ModeOf("") }

// Announces implements localcall.Recording.
func (c *liveCall) Announces() bool { return c.policy.Announce && c.mode() == callrecording.ModeAll }

// Begin implements localcall.Recording.
func (c *liveCall) Begin(media sip.NegotiatedMedia) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.media, c.begun = media, true
	if c.mode() != callrecording.ModeAll {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := c.start(ctx)
	if err != nil {
		c.recorder.log.Error("a call is not recorded", "account_id", c.AccountID, "call_id", c.CallID, "error", err)
	}
}

// start begins a recording. The caller holds mu.
func (c *liveCall) start(ctx context.Context) error {
	took, err := c.recorder.service.createTake(ctx, c.AccountID, Call{
		CallID: c.CallID, InteractionID: c.InteractionID, OriginationCallID: c.OriginationCallID,
		Direction: c.Direction, StartedAt: time.Now().Unix(),
	})
	if err != nil {
		return err
	}
	took.useMedia(c.media)
	took.keys.keys = c.recorder.service.settings.PauseKeys
	took.onKeys = func() {
		if !took.beginPause() {
			took.resume()
		}
	}
	c.take = took
	go took.run()
	c.Port.AddTap(took)
	return nil
}

// SetMedia implements localcall.Recording.
func (c *liveCall) SetMedia(media sip.NegotiatedMedia) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.media = media
	if c.take != nil {
		c.take.useMedia(media)
	}
}

// stop ends the recording in progress and stores it on a goroutine. The caller holds mu.
func (c *liveCall) stop() {
	took := c.take
	if took == nil {
		return
	}
	c.take = nil
	c.Port.RemoveTap(took)
	r := c.recorder
	r.storing.Go(func() {
		took.stop()
		name := took.journal.file.Name()
		err := took.journal.file.Close()
		if err == nil {
			err = r.service.storeTake(context.Background(), name)
		}
		if err != nil { // it is tried again
			r.log.Error("storing the recording of a call failed, retrying", "account_id", c.AccountID, "call_id", c.CallID, "error", err)
			return
		}
		r.service.wake()
	})
}

// End implements localcall.Recording.
func (c *liveCall) End() {
	c.mu.Lock()
	c.ended = true
	c.stop()
	c.mu.Unlock()
	c.recorder.mu.Lock()
	delete(c.recorder.calls, c)
	c.recorder.mu.Unlock()
}

// Control starts, stops, pauses or resumes the recording of an account's call in progress in this
// process, with an entry of the audit log. Returns fault.KindNotFound for a call that is not, and
// fault.KindConflict where its account's mode or the recording's state does not allow it.
func (r *Recorder) Control(ctx context.Context, accountID, callID, action string) error {
	c := r.callInProgress(accountID, callID)
	if c == nil {
		return fault.NotFound("there is no such call in progress on this node")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode() == callrecording.ModeOff {
		return fault.Conflict("the account's calls are not recorded: its mode is off")
	}
	if !c.begun || c.ended {
		return fault.Conflict("the call is not connected")
	}
	switch action {
	case "start":
		if c.take != nil {
			return fault.Conflict("the call is being recorded")
		}
		if err := c.start(ctx); err != nil {
			return err
		}
	case "stop":
		if c.take == nil {
			return errNotRecorded()
		}
		c.stop()
	case "pause":
		if c.take == nil || !c.take.beginPause() {
			return errNotRecorded()
		}
	case "resume":
		if c.take == nil || !c.take.resume() {
			return fault.Conflict("the recording is not paused")
		}
	default:
		return fault.InvalidField("action", "unsupported", "action must be start, stop, pause or resume")
	}
	return r.service.audit.Record(ctx, r.service.audit.Entry(ctx, audit.CallRecord, accountID, action+":"+callID))
}

func errNotRecorded() error { return fault.Conflict("the call is not being recorded") }

func (r *Recorder) callInProgress(accountID, callID string) *liveCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.calls {
		if c.Has(accountID, callID) {
			return c
		}
	}
	return nil
}

// encryptionOf returns the sealing with which a recording began.
func encryptionOf(d *takeDescription, key encryption.Key) encryption.Sealing {
	return encryption.Sealing{Enabled: true, Algorithm: d.Algorithm, Key: key}
}
