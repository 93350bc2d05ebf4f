package origination

// has says whether the call is in the book and has not ended.
func (b *book) has(callID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byCall[callID]
	return e != nil && e.State != Ended
}

// cancelling says whether this is the first time that it is asked of the call.
func (b *book) cancelling(callID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byCall[callID]
	if e == nil || e.cancelled || e.State == Ended {
		return false
	}
	e.cancelled = true
	return true
}

// notCancelled takes cancelling back.
func (b *book) notCancelled(callID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byCall[callID]; e != nil {
		e.cancelled = false
	}
}
