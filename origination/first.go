package origination

import "sync"

// firsts are the users whose first calls are being placed, and the resources
// that this process made for them: an order may have read its user a moment
// before.
type firsts struct {
	mu    sync.Mutex
	users map[string]*first
	made  map[string]string // by user id
}

type first struct {
	turn chan struct{} // held by the one that talks to the platform
	here int           // guarded by firsts.mu
}

func newFirsts() *firsts {
	return &firsts{users: map[string]*first{}, made: map[string]string{}}
}

func (f *firsts) enter(userID string) *first {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.users[userID]
	if one == nil {
		one = &first{turn: make(chan struct{}, 1)}
		f.users[userID] = one
	}
	one.here++
	return one
}

func (f *firsts) leave(userID string, one *first) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.here--; one.here == 0 {
		delete(f.users, userID)
	}
}

func (f *firsts) resource(userID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made[userID]
}

func (f *firsts) keep(userID, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made[userID] = id
}
