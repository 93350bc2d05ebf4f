package origination

// dropOthers removes those known calls that are not in orderIDs, the node's calls in the database:
// another node took them over after this node's lease expired.
func (s *callStore) dropOthers(orderIDs []string, known map[string]bool) {
	own := make(map[string]bool, len(orderIDs))
	for _, id := range orderIDs {
		own[id] = true
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for id := range known {
		e := s.byID[id]
		if e != nil && !own[id] {
			s.remove(e)
		}
	}
}

// storedIDs returns the calls that have been stored as this node's.
func (s *callStore) storedIDs() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make(map[string]bool, len(s.byID))
	for id, e := range s.byID {
		if e.stored > 0 {
			ids[id] = true
		}
	}
	return ids
}

// takeLostCalls reports whether a write found a call that another node has taken over, and resets that
// flag.
func (s *callStore) takeLostCalls() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.lostCalls
	s.lostCalls = false
	return was
}

// setLostCalls makes the next takeLostCalls return true.
func (s *callStore) setLostCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lostCalls = true
}
