package origination

import (
	"context"
	"time"

	"trunkline/audit"
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

// Cancel ends a call on behalf of its owner or an administrator. It may return before the call has
// ended: a call of another node is cancelled by that node. The error is fault.Conflict for a call that
// has ended.
func (s *Service) Cancel(ctx context.Context, caller *identity.Principal, callID string) error {
	result, err := s.cancelCall(ctx, caller, callID)
	s.metrics.cancels.WithLabelValues(result).Inc()
	return err
}

func (s *Service) cancelCall(ctx context.Context, caller *identity.Principal,
	callID string) (result string, err error) {
	r, err := s.findVisible(ctx, caller, callID)
	if err != nil {
		return cancelRefused, err
	}
	if caller.UserID != r.UserID && caller.Role != identity.RoleAdmin {
		return cancelRefused, fault.Forbidden("Only its owner and administrators may cancel a call")
	}
	ended := fault.Conflict("The call has ended")
	if r.State == Ended {
		return cancelRefused, ended
	}
	entry := s.audit.Entry(ctx, audit.CallCancel, r.AccountID, "call:"+callID)
	if s.calls.isOpen(callID) {
		if err := s.cancelHere(ctx, callID); err != nil {
			return cancelFailed, err
		}
		s.audit.Report(ctx, entry)
		return cancelHere, nil
	}
	open, err := s.rows.requestCancel(ctx, r.Order.ID)
	switch {
	case err != nil:
		return cancelFailed, err
	case !open:
		return cancelRefused, ended
	}
	s.audit.Report(ctx, entry)
	return cancelElsewhere, nil
}

// cancelHere ends a call of this node. A call that the driver does not have is treated as ended.
func (s *Service) cancelHere(ctx context.Context, callID string) error {
	err := s.driver.Cancel(ctx, callID)
	if fault.KindOf(err) == fault.KindNotFound {
		s.calls.report(Progress{CallID: callID, State: Ended, Cause: CauseCancelled, At: time.Now()})
		return nil
	}
	return err
}
