package origination

// isOpen reports whether this process has the call and it has not ended.
func (s *callStore) isOpen(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	return e != nil && e.State != Ended
}

// beginCancel marks the call as being cancelled. It returns false if it was marked before or is not
// open here.
func (s *callStore) beginCancel(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	if e == nil || e.cancelSent || e.State == Ended {
		return false
	}
	e.cancelSent = true
	return true
}

// undoCancel removes the mark of beginCancel.
func (s *callStore) undoCancel(callID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	if e != nil {
		e.cancelSent = false
	}
}
