package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/limitprefix"
)

const (
	failuresPerUser    = 10
	failuresPerAddress = 100
	failureWindow      = 5 * time.Minute
)

// loginAttempt identifies one attempt to authenticate as a user, by any protocol. Failures
// are counted per user, per address (IPv6: per /64 and per /56), and per pair of user and
// address. A count is reset only when its window ends.
type loginAttempt struct {
	user    string // as given, whether or not the user exists
	network string // the IPv4 address or IPv6 /64; "" if the address is unknown
	site    string // /56 of an IPv6 address, else ""

	// proven is true if somebody who only guesses passwords could not have made the attempt:
	// failures from other addresses do not refuse it.
	proven bool
}

func newLoginAttempt(domain, username, address string) loginAttempt {
	from := limitprefix.Of(address)
	return loginAttempt{user: strings.ToLower(domain) + "\x00" + strings.ToLower(username), network: from.Host,
		site: from.Site}
}

func (r LoginRequest) attempt() loginAttempt { return newLoginAttempt(r.Domain, r.Username, r.Address) }

func (a loginAttempt) allLimits() []Limit {
	return append([]Limit{{subjectHash("user", a.user), failuresPerUser, failureWindow}}, a.addressAndPairLimits()...)
}

// addressAndPairLimits returns all limits except that of the user: failures from other
// addresses do not count against them.
func (a loginAttempt) addressAndPairLimits() []Limit {
	if a.network == "" {
		return nil
	}
	return append([]Limit{{subjectHash("pair", a.user+"\x00"+a.network), failuresPerUser, failureWindow}},
		a.addressLimits()...)
}

// addressLimits returns the limits of the address, for all users together.
func (a loginAttempt) addressLimits() []Limit {
	if a.network == "" {
		return nil
	}
	limits := []Limit{{subjectHash("address", a.network), failuresPerAddress, failureWindow}}
	if a.site != "" {
		limits = append(limits,
			Limit{subjectHash("address", a.site), limitprefix.SiteFactor * failuresPerAddress, failureWindow})
	}
	return limits
}

// loginLimits refuses attempts after too many failed ones.
type loginLimits struct {
	limiter   Limiter
	addresses *knownAddresses
}

// check returns fault.KindLimited if a limit of the attempt is exhausted.
func (l *loginLimits) check(ctx context.Context, a loginAttempt) error {
	wait := l.limiter.Wait(ctx, a.allLimits()...)
	if wait <= 0 || l.isUserLimitWaived(ctx, a) {
		return nil
	}
	return limitedError(wait)
}

// checkOrLock is check, but only reports whether the limit of the user is
// exhausted: an attempt that is proven by other means than a password passes it.
func (l *loginLimits) checkOrLock(ctx context.Context, a loginAttempt) (locked bool, err error) {
	err = l.check(ctx, a)
	if err == nil || a.network == "" || l.limiter.Wait(ctx, a.addressAndPairLimits()...) > 0 {
		return false, err
	}
	return true, nil
}

// lockedError returns the error for an attempt that does not pass the limit of the user.
func (l *loginLimits) lockedError(ctx context.Context, a loginAttempt) error {
	// The wait may have ended since, and limitedError returns nil for none.
	return limitedError(max(time.Second, l.limiter.Wait(ctx, a.allLimits()...)))
}

// countFailure counts a failed attempt. It returns fault.KindLimited if the attempt
// exceeded a limit.
func (l *loginLimits) countFailure(ctx context.Context, a loginAttempt) error {
	wait := l.limiter.Fail(ctx, a.allLimits()...)
	if wait <= 0 || l.isUserLimitWaived(ctx, a) {
		return nil
	}
	return limitedError(wait)
}

// isUserLimitWaived reports whether the limit of the user does not apply, because the
// attempt is proven or the user has authenticated from this address before: failures from
// other addresses then do not lock the user out. The limits of the address itself still
// apply.
func (l *loginLimits) isUserLimitWaived(ctx context.Context, a loginAttempt) bool {
	return a.network != "" && l.limiter.Wait(ctx, a.addressAndPairLimits()...) <= 0 &&
		(a.proven || l.addresses.knownOfUser(ctx, a))
}

func limitedError(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	wait = wholeSeconds(wait)
	return fault.Limited(wait, fmt.Sprintf("Too many failed logins: try again in %.0f seconds", wait.Seconds()))
}
