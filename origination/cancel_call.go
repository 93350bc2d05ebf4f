package origination

import (
	"context"
	"errors"
	"time"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/fault"
)

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
	accountID, err := s.CheckCancel(ctx, caller, callID)
	if err != nil {
		return cancelRefused, err
	}

	entry := s.audit.Entry(ctx, audit.CallCancel, accountID, "call:"+callID)
	result, err = s.endCall(ctx, callID)
	if err == nil {
		s.audit.Report(ctx, entry)
	}

	return result, err
}

// CheckCancel returns the account of a call that the caller may end. The error is fault.NotFound for a call of an
// account that the caller may not see, fault.Forbidden for another than its owner or an administrator, and
// fault.Conflict for one that has ended.
func (s *Service) CheckCancel(ctx context.Context, caller *identity.Principal,
	callID string) (accountID string, err error) {
	r, err := s.findVisible(ctx, caller, callID)
	switch {
	case err != nil:
		return "", err
	case caller.UserID != r.UserID && caller.Role != identity.RoleAdmin:
		return "", fault.Forbidden("Only its owner and administrators may cancel a call")
	case r.State == Ended:
		return "", fault.Conflict("The call has ended")
	}

	return r.AccountID, nil
}

// HangUp is Cancel without its check and its entry of the audit log, which are the caller's.
func (s *Service) HangUp(ctx context.Context, callID string) error {
	result, err := s.endCall(ctx, callID)
	s.metrics.cancels.WithLabelValues(result).Inc()
	return err
}

// endCall ends a call of this or another node.
func (s *Service) endCall(ctx context.Context, callID string) (result string, err error) {
	if s.calls.isOpen(callID) {
		if err := s.cancelHere(ctx, callID); err != nil {
			return cancelFailed, err
		}
		return cancelHere, nil
	}

	r, err := s.rows.find(ctx, callID)
	if err != nil {
		return cancelFailed, err
	}

	open, err := s.rows.requestCancel(ctx, r.Order.ID)
	switch {
	case err != nil:
		return cancelFailed, err
	case !open:
		return cancelRefused, fault.Conflict("The call has ended")
	}

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

// cancelRequested cancels the calls of this node whose cancellation was requested on other nodes.
func (s *Service) cancelRequested(ctx context.Context) error {
	calls, err := s.rows.listCancelRequests(ctx)
	if err != nil {
		return err
	}

	var failed []error
	for _, callID := range calls {
		if !s.calls.beginCancel(callID) {
			continue
		}
		if err := s.cancelHere(ctx, callID); err != nil {
			s.calls.undoCancel(callID)
			failed = append(failed, err)
		}
	}

	return errors.Join(failed...)
}
