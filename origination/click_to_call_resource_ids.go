package origination

import "sync"

// clickToCallResourceIDs are the ids of the click-to-call resources that users' first orders created, because an
// order may have read its user before the id was stored.
type clickToCallResourceIDs struct {
	mu       sync.Mutex
	byUserID map[string]string
}

func (r *clickToCallResourceIDs) find(userID string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byUserID[userID]
}

func (r *clickToCallResourceIDs) set(userID, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byUserID[userID] = id
}
