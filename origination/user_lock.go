package origination

import "sync"

// perUserLock serializes each user's first orders, which may create the user's click-to-call resource
// on the platform. It caches the ids of created resources, because an order may have read its user
// before the id was stored.
type perUserLock struct {
	mu        sync.Mutex
	locks     map[string]*userLock
	resources map[string]string // by user id
}

type userLock struct {
	sem     chan struct{} // holds a token while an order is on the platform
	holders int           // guarded by perUserLock.mu
}

func newPerUserLock() *perUserLock {
	return &perUserLock{locks: map[string]*userLock{}, resources: map[string]string{}}
}

func (l *perUserLock) addHolder(userID string) *userLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.locks[userID]
	if lock == nil {
		lock = &userLock{sem: make(chan struct{}, 1)}
		l.locks[userID] = lock
	}
	lock.holders++
	return lock
}

func (l *perUserLock) removeHolder(userID string, lock *userLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock.holders--
	if lock.holders == 0 {
		delete(l.locks, userID)
	}
}

func (l *perUserLock) resource(userID string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resources[userID]
}

func (l *perUserLock) setResource(userID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources[userID] = id
}
