package app

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/google/uuid"

	"trunkline/audit"
	"trunkline/origination"
	"trunkline/settings"
	"trunkline/telephony/number"
	"trunkline/telephony/sip"
)

// buildAdmission builds the limits of calls for the roles that place calls or transfer them.
func buildAdmission(b *base) (*origination.Admission, error) {
	// The role api transfers calls of feeds only: without feeds it needs no limits.
	if !b.hasRole(settings.RoleOrigination) && !b.hasRole(settings.RoleAISession) &&
		!(b.hasRole(settings.RoleAPI) && len(b.settings.Feeds) > 0) {
		return nil, nil
	}

	plan, err := number.NewPlan(b.settings.Numbers)
	if err != nil {
		return nil, fmt.Errorf("numbers: %w", err)
	}

	limits, err := b.settings.Origination.Admission(plan, origination.Trunk{
		Used: b.settings.SIP.Calls.Trunk.Address != "", OutsidePrefix: outsidePrefix(b.settings),
	})
	if err != nil {
		return nil, err
	}

	if b.settings.SIP.Calls.Trunk.Address != "" && b.settings.Origination.OpenTrunk(b.settings.Numbers) {
		b.log.Warn("sip.trunk takes no numbers: it cannot tell which leave the country; set numbers.country (or numbers.account_country), " +
			"or name what may be dialled in origination.allow (or origination.account_allow)")
	}

	admission := origination.NewAdmission(limits, origination.AdmissionDeps{
		Limiter: b.limiter, Slots: origination.NewRedisSlots(b.redis, b.settings.Redis.KeyPrefix), Audit: b.audit,
		Metrics: b.registry, Log: b.log,
	})
	b.lifecycle.addRun("call limits", admission.Run)

	return admission, nil
}

// outsidePrefix returns the prefix that our own trunk removes from numbers.
func outsidePrefix(s *settings.Settings) string {
	switch s.Origination.Driver {
	case "", origination.DriverSIP, origination.DriverAuto:
		return s.SIP.Calls.Trunk.StripPrefix
	}
	return ""
}

// phoneAdmission implements sipcall.Admission.
type phoneAdmission struct{ *origination.Admission }

// Admit implements sipcall.Admission.
func (p phoneAdmission) Admit(ctx context.Context, caller sip.User, from netip.Addr) (leave func(), err error) {
	attempt := origination.Attempt{
		Origin: origination.OriginSIP, CallID: uuid.NewString(), AccountID: caller.AccountID, UserID: caller.UserID,
		Caller: audit.Caller{Actor: "sip:" + caller.Extension, Address: from.Unmap().String()},
	}
	if err := p.CountAttempt(ctx, attempt); err != nil {
		return nil, err
	}
	if err := p.Acquire(ctx, attempt); err != nil {
		return nil, err
	}

	return func() { p.Release(attempt.CallID) }, nil
}

// AdmitTransfer implements sipcall.Admission.
func (p phoneAdmission) AdmitTransfer(ctx context.Context, caller sip.User, accountID, destination string) error {
	attempt := origination.Attempt{Origin: origination.OriginTransfer, AccountID: accountID}
	if caller.UserID != "" {
		attempt.AccountID, attempt.UserID = caller.AccountID, caller.UserID
		attempt.Caller.Actor = "sip:" + caller.Extension
	}
	if err := p.CheckDestination(ctx, attempt, destination); err != nil {
		return err
	}
	return p.CountAttempt(ctx, attempt)
}
