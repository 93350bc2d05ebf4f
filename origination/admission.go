package origination

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/telephony/number"
)

// AdmissionConfig has the limits of calls that users place. The zero value limits nothing.
type AdmissionConfig struct {
	Rules   *Rules       // nil allows all destinations
	Numbers *number.Plan // nil disables checks of numbers
	// International allows numbers outside the account's country.
	International bool
	// ByPlatform means that calls by REST are placed by a phone platform, not by our own SIP.
	ByPlatform bool
	// PlatformDecides allows numbers outside the account's country in calls by REST: the
	// platform's dialplan and permissions decide.
	PlatformDecides bool
	// Trunk means that calls can leave over our own trunk: those of phones and transfers, and those by REST unless
	// ByPlatform. It takes the numbers of an account without a country only where Rules say what the account may
	// dial: what a number without "+" means there is not known.
	Trunk bool
	// PremiumNumbers has the numbers that are blocked because of their price. nil blocks none.
	Premium *PremiumNumbers
	// OutsidePrefix is dialled before a number to select the trunk. It is not part of the number.
	OutsidePrefix string
	PerMinute     int // calls that a user may place in a minute; 0 means no limit
	UserCalls     int // concurrent calls of a user in the cluster; 0 means no limit
	AccountCalls  int // concurrent calls of an account in the cluster; 0 means no limit
}

// Origin is the interface over which a user places a call.
type Origin string

// Values of Origin.
const (
	OriginREST     Origin = "rest"
	OriginSIP      Origin = "sip"
	OriginTransfer Origin = "transfer" // by an AI provider, of a user's call
)

// Attempt is a call that a user is about to place.
type Attempt struct {
	Origin    Origin
	CallID    string // unique in the cluster
	AccountID string
	UserID    string // "": a PBX in a trusted network
	// Caller is the actor of the entry in the audit log.
	Caller audit.Caller
}

// Auditor is the audit log.
type Auditor interface {
	// Entry returns an entry with the context's caller, the current time and audit.OutcomeOK. It is not
	// stored.
	Entry(ctx context.Context, action audit.Action, accountID, target string) audit.Entry
	// ReportOnce is Report, at most once per repeatInterval for the same actor, address, action and
	// target. It is for events that a client can cause without limit.
	ReportOnce(ctx context.Context, e audit.Entry)
}

// Reason is the reason for refusing a call.
type Reason string

// The reasons.
const (
	ReasonUserCalls     Reason = "user_calls"
	ReasonAccountCalls  Reason = "account_calls"
	ReasonPerMinute     Reason = "user_per_minute"
	ReasonInternational Reason = "international"
	ReasonNoCountry     Reason = "no_country"
	ReasonPremium       Reason = "premium"
	ReasonRules         Reason = "rules"
)

// AdmissionDeps are the dependencies of an Admission.
type AdmissionDeps struct {
	Limiter identity.Limiter
	Slots   Slots   // nil counts calls on this node only
	Audit   Auditor // nil writes no audit log
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Admission decides which calls users may place with the REST API, from phones and by transfers of AI
// providers. It is safe for concurrent use.
//
// The calls in progress of this node are held in memory, so that they are counted while Slots are
// unavailable; the limits then apply to this node's calls alone.
type Admission struct {
	cfg     AdmissionConfig
	deps    AdmissionDeps
	refused *prometheus.CounterVec
	wake    chan struct{} // holds at most one token: slots are to be released

	mu            sync.Mutex
	heldSlots     map[string]Slot // by call
	releasedSlots []Slot          // of ended calls, to be released in Slots
}

// NewAdmission returns an Admission. Run renews its slots.
func NewAdmission(cfg AdmissionConfig, deps AdmissionDeps) *Admission {
	if cfg.Rules == nil {
		cfg.Rules = &Rules{}
	}
	return &Admission{
		cfg: cfg, deps: deps, refused: newRefusedCalls(deps.Metrics),
		wake: make(chan struct{}, 1), heldSlots: map[string]Slot{},
	}
}

// CheckDestination returns fault.Forbidden for a destination that the account may not call.
func (a *Admission) CheckDestination(ctx context.Context, attempt Attempt, destination string) error {
	if a.cfg.Rules.Check(attempt.AccountID, destination) != nil {
		return a.refuse(ctx, attempt, ReasonRules, forbidden("The account may not call this destination"))
	}
	if a.cfg.Numbers == nil {
		return nil
	}

	dialled := destination
	// A "+" stays, also where the trunk strips it: without it a number is read as one of the account's country.
	if !strings.HasPrefix(a.cfg.OutsidePrefix, "+") {
		dialled = strings.TrimPrefix(destination, a.cfg.OutsidePrefix) // as the trunk does
	}

	switch {
	// First: they are blocked where all countries may be called, too.
	case a.cfg.Premium.blocks(a.cfg.Numbers, attempt.AccountID, dialled):
		return a.refuse(ctx, attempt, ReasonPremium, forbidden("Premium-rate numbers may not be called"))
	case a.cfg.International:
		return nil
	case a.isUnknownAtTrunk(attempt, dialled):
		return a.refuse(ctx, attempt, ReasonNoCountry, forbidden(
			"The number may not be called: the account's country is not known (numbers.country, numbers.account_country), and no pattern names it (origination.allow, origination.account_allow)"))
	case !(a.cfg.PlatformDecides && attempt.Origin == OriginREST) && a.cfg.Numbers.Abroad(attempt.AccountID, dialled):
		return a.refuse(ctx, attempt, ReasonInternational, forbidden(
			"International numbers may not be called (origination.international; the account's country is that of numbers.country or numbers.account_country)"))
	}

	return nil
}

// isUnknownAtTrunk reports whether our own trunk would take a number of which neither the
// account's country nor a pattern tells what it is.
func (a *Admission) isUnknownAtTrunk(attempt Attempt, dialled string) bool {
	overTrunk := a.cfg.Trunk && !(a.cfg.ByPlatform && attempt.Origin == OriginREST)
	return overTrunk && a.cfg.Numbers.Outside(dialled) && !a.cfg.Numbers.HasCountry(attempt.AccountID) &&
		!a.cfg.Rules.HasAllowList(attempt.AccountID)
}

// openingSettings returns the settings that open what was refused for the reason, for the audit
// log; "" if none does.
func (r Reason) openingSettings() string {
	switch r {
	case ReasonInternational:
		return "origination.international, numbers.country"
	case ReasonNoCountry:
		return "numbers.country, origination.allow"
	}
	return ""
}

func forbidden(message string) error {
	return &fault.Error{Kind: fault.KindForbidden, Message: message,
		Fields: []fault.Field{{Field: "destination", Code: "not_allowed", Message: message}}}
}

// CountAttempt counts a call against its user's limit per minute. The error is fault.Limited above it.
func (a *Admission) CountAttempt(ctx context.Context, attempt Attempt) error {
	if a.cfg.PerMinute == 0 || attempt.UserID == "" {
		return nil
	}

	sum := sha256.Sum256([]byte("clicktocall\x00" + attempt.UserID))
	wait := a.deps.Limiter.Fail(ctx,
		identity.Limit{Subject: hex.EncodeToString(sum[:16]), Max: a.cfg.PerMinute, Window: time.Minute})
	if wait > 0 {
		return a.refuse(ctx, attempt, ReasonPerMinute, fault.Limited(wait, "Too many calls, try again later"))
	}

	return nil
}

// refuse counts a refusal and writes it to the audit log.
func (a *Admission) refuse(ctx context.Context, attempt Attempt, reason Reason, err error) error {
	a.refused.WithLabelValues(string(attempt.Origin), string(reason)).Inc()
	if a.deps.Audit == nil {
		return err
	}

	target := ""
	if attempt.UserID != "" {
		target = "user:" + attempt.UserID
	}

	e := a.deps.Audit.Entry(ctx, audit.CallRefuse, attempt.AccountID, target)
	if attempt.Caller != (audit.Caller{}) {
		e.Actor, e.Address = attempt.Caller.Actor, attempt.Caller.Address
	}

	e.Outcome = string(reason)
	settings := reason.openingSettings()
	if settings != "" {
		e.Outcome += " (" + settings + ")"
	}

	a.deps.Audit.ReportOnce(ctx, e)
	return err
}
