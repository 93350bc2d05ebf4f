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
func (a *App) buildAdmission() (*origination.Admission, error) {
	// The role api transfers calls of feeds only: without feeds it needs no limits.
	if !a.hasRole(settings.RoleOrigination) && !a.hasRole(settings.RoleAISession) &&
		!(a.hasRole(settings.RoleAPI) && len(a.settings.Feeds) > 0) {
		return nil, nil
	}

	plan, err := number.NewPlan(a.settings.Numbers)
	if err != nil {
		return nil, fmt.Errorf("numbers: %w", err)
	}

	limits, err := a.settings.Origination.Admission(plan, origination.Trunk{
		Used: a.settings.SIP.Calls.Trunk.Address != "", OutsidePrefix: a.outsidePrefix(),
	})
	if err != nil {
		return nil, err
	}

	if a.settings.SIP.Calls.Trunk.Address != "" && a.settings.Origination.OpenTrunk(a.settings.Numbers) {
		a.log.Warn("sip.trunk takes no numbers: it cannot tell which leave the country; set numbers.country (or numbers.account_country), " +
			"or name what may be dialled in origination.allow (or origination.account_allow)")
	}

	admission := origination.NewAdmission(limits, origination.AdmissionDeps{
		Limiter: a.limiter, Slots: origination.NewRedisSlots(a.redis, a.settings.Redis.KeyPrefix), Audit: a.audit,
		Metrics: a.registry, Log: a.log,
	})
	a.lifecycle.addRun("call limits", admission.Run)

	return admission, nil
}

// outsidePrefix returns the prefix that our own trunk removes from numbers.
func (a *App) outsidePrefix() string {
	switch a.settings.Origination.Driver {
	case "", origination.DriverSIP, origination.DriverAuto:
		return a.settings.SIP.Calls.Trunk.StripPrefix
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
	if err := p.Count(ctx, attempt); err != nil {
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
	return p.Count(ctx, attempt)
}
