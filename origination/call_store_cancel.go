package origination

// isOpen reports whether the call is this process's and has not ended.
func (s *callStore) isOpen(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byCall[callID]
	return e != nil && e.State != Ended
}

// beginCancel marks the call as being cancelled. It returns false when that was
// done before, or the call is not open here.
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

// undoCancel takes the mark of beginCancel back.
func (s *callStore) undoCancel(callID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byCall[callID]; e != nil {
		e.cancelSent = false
	}
}
