package origination

import (
	"context"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// Get returns the progress of a call. The error is fault.NotFound for a call of an account that the
// caller may not see.
func (s *Service) Get(ctx context.Context, caller *identity.Principal, callID string) (*Call, error) {
	r, err := s.findVisible(ctx, caller, callID)
	if err != nil {
		return nil, err
	}
	return &r.Call, nil
}

func (s *Service) findVisible(ctx context.Context, caller *identity.Principal, callID string) (row, error) {
	r, err := s.rows.find(ctx, callID)
	if err != nil {
		return row{}, err
	}
	if !s.users.Tree().Contains(caller.AccountID, r.AccountID) {
		return row{}, fault.NotFound("There is no such call")
	}
	return r, nil
}

// HasEnded reports whether a call has ended.
func (s *Service) HasEnded(ctx context.Context, callID string) (bool, error) {
	r, err := s.rows.find(ctx, callID)
	return r.State == Ended, err
}
