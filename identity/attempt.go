package identity

import (
	"context"
	"strings"
	"time"

	"trunkline/internal/addressprefix"
	"trunkline/internal/fault"
)

const (
	failuresPerUser    = 10
	failuresPerAddress = 100
	failureWindow      = 5 * time.Minute
)

// attempt is one attempt to authenticate as a user, by any protocol. Failures are
// counted per user, per address (IPv6: per /64 and per /56), and per pair of user and
// address. A count is reset only when its window ends.
type attempt struct {
	user    string // as given, whether or not the user exists
	network string // host of the address, "" if it is unknown
	site    string // /56 of an IPv6 address, else ""
}

func newAttempt(domain, username, address string) attempt {
	from := addressprefix.Of(address)
	return attempt{user: strings.ToLower(domain) + "\x00" + strings.ToLower(username), network: from.Host, site: from.Site}
}

func (c Credentials) attempt() attempt { return newAttempt(c.Domain, c.Username, c.Address) }

func (a attempt) limits() []Limit {
	return append([]Limit{{subject("user", a.user), failuresPerUser, failureWindow}}, a.limitsHere()...)
}

// limitsHere returns the limits that failures from other addresses do not count
// against.
func (a attempt) limitsHere() []Limit {
	if a.network == "" {
		return nil
	}
	return append([]Limit{{subject("pair", a.user+"\x00"+a.network), failuresPerUser, failureWindow}}, a.addressLimits()...)
}

// addressLimits returns the limits of the address, for all users together.
func (a attempt) addressLimits() []Limit {
	if a.network == "" {
		return nil
	}
	limits := []Limit{{subject("address", a.network), failuresPerAddress, failureWindow}}
	if a.site != "" {
		limits = append(limits, Limit{subject("address", a.site), addressprefix.SiteFactor * failuresPerAddress, failureWindow})
	}
	return limits
}

// allow returns fault.Limited if the attempt may not be made now.
func (s *Service) allow(ctx context.Context, a attempt) error {
	wait := s.limiter.Wait(ctx, a.limits()...)
	if wait <= 0 || s.exempt(ctx, a) {
		return nil
	}
	return limited(wait)
}

// failed counts a failed attempt. It returns fault.Limited if it was one more
// than allowed.
func (s *Service) failed(ctx context.Context, a attempt) error {
	wait := s.limiter.Fail(ctx, a.limits()...)
	if wait <= 0 || s.exempt(ctx, a) {
		return nil
	}
	return limited(wait)
}

// exempt reports whether the user's limit is waived because the user has authenticated
// from this address before: failures from other addresses then do not lock the user out.
// The limits of the address itself still apply.
func (s *Service) exempt(ctx context.Context, a attempt) bool {
	return a.network != "" && s.limiter.Wait(ctx, a.limitsHere()...) <= 0 && s.addresses.known(ctx, a)
}

func limited(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	seconds := (wait + time.Second - 1).Truncate(time.Second)
	return fault.Limited(seconds, "Too many failed logins")
}
