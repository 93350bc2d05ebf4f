package aisession

// Places of recovered panics.
const (
	placeTick    = "ai_session"
	placeIngress = "ai_ingress"
)

// RunRecovered runs a part of the ingress that serves the session. A panic in it ends the session.
func (s *Session) RunRecovered(f func()) {
	if s.service.panics.Do(placeIngress, f) {
		s.endWithFallback(InternalError)
	}
}

// RunRecovered runs a part of an ingress that has no session yet. A panic in it is counted and logged.
func (s *Service) RunRecovered(f func()) { s.panics.Do(placeIngress, f) }
