package identity

import (
	"fmt"

	"trunkline/event"
)

// checkFilters names every account and event type of a channel login that is
// not to be had.
func (s *Service) checkFilters(user User, accountIDs, eventTypes []string) error {
	var bad problems
	tree := s.Tree()
	for i, id := range accountIDs {
		if !tree.Contains(user.AccountID, id) {
			bad.add(fmt.Sprintf("account_ids[%d]", i), "unknown_account", "unknown account "+quote(id))
		}
	}
	for i, name := range eventTypes {
		if _, _, known := event.SetOf([]string{name}); !known {
			bad.add(fmt.Sprintf("event_types[%d]", i), "unknown_type", "unknown event type "+quote(name))
		}
	}
	return bad.fault("Invalid filter")
}
