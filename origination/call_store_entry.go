package origination

import (
	"encoding/json"
	"sync"
)

// storeEntry is one call of a callStore, guarded by its lock.
type storeEntry struct {
	row
	placed         bool // the platform has accepted it: its steps may be published
	changes        int  // of the row, since the entry was made
	writtenChanges int  // those of them that the database has
	storedSteps    int  // steps of History that the database has
	storing        bool // a goroutine stores it
	publishing     bool // a goroutine publishes it
	deleting       bool // the row is to be deleted
	removed        bool // no longer in the callStore
	cancelSent     bool // Driver.Cancel was called

	writing sync.Mutex // held during a statement, and not guarded
}

// toStore reports whether a change is not in the database.
func (e *storeEntry) toStore() bool { return !e.removed && e.writtenChanges < e.changes }

// toPublish reports whether a stored step is not published.
func (e *storeEntry) toPublish() bool {
	return e.placed && !e.removed && !e.deleting && e.Call.ID != "" && e.PublishedSteps < e.storedSteps
}

// isLive reports whether the row, once stored, is one of the node's live ones, unless another node took it.
func (e *storeEntry) isLive() bool { return e.Live && !e.removed && !e.deleting }

// endOncePublished marks a call that has ended as no longer live, once its last step is published.
func (e *storeEntry) endOncePublished() {
	// By the call, not by what was published: it may have got further steps meanwhile.
	if e.State == Ended && e.Live && e.PublishedSteps == len(e.History) {
		e.Live = false
		e.changes++
	}
}

// progressEvent is the data of a call.progress event.
type progressEvent struct {
	Event     string `json:"event"`
	AccountID string `json:"account_id"`
	Timestamp int64  `json:"timestamp"` // Unix seconds
	CallID    string `json:"origination_call_id"`
	State     State  `json:"state"`
	Cause     string `json:"cause,omitempty"`
	UserID    string `json:"user_id,omitempty"`
}

// progressEvents returns the call.progress events of the stored steps that are not published.
func (e *storeEntry) progressEvents() (events []Event) {
	for _, step := range e.History[e.PublishedSteps:e.storedSteps] {
		p := progressEvent{"call.progress", e.AccountID, step.At.Unix(), e.Call.ID, step.State, "", e.UserID}
		if step.State == Ended {
			p.Cause = e.Cause
		}
		data, _ := json.Marshal(p) // strings and numbers always marshal
		events = append(events, Event{e.AccountID, data, step.State, e.Order.Trace})
	}
	return events
}
