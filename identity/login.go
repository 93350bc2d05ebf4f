package identity

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Login checks the credentials and creates a session with tokens for the api audience. A
// wrong user, domain or password takes the same time and returns the same error. After
// too many of them the error is fault.KindLimited.
func (s *Service) Login(ctx context.Context, c Credentials) (session *Session, err error) {
	defer func() { s.countLogin(AudienceAPI, err) }()
	user, err := s.authenticateUser(ctx, AudienceAPI, c)
	if err != nil {
		return nil, err
	}
	s.ensurePortalHA1(ctx, user, c.Password)
	return s.beginSession(ctx, user, c.Address, time.Time{})
}

// beginSession creates a session that ends at latestEnd (zero: no bound) at the latest.
// It fails if the login cannot be written to the audit log.
func (s *Service) beginSession(ctx context.Context, user User, address string, latestEnd time.Time) (*Session, error) {
	if err := s.limitTokens(ctx, tokenLogins, user.ID, s.cfg.UserTokensPerMinute); err != nil {
		return nil, err
	}
	session, err := s.newSession(ctx, user, latestEnd)
	if err != nil {
		return nil, err
	}
	if err := s.audit.Record(ctx, s.loginEntry(ctx, audit.Login, AudienceAPI, address, user)); err != nil {
		return nil, err
	}
	return session, nil
}

func (s *Service) loginEntry(ctx context.Context, action audit.Action, audience Audience, address string,
	user User) audit.Entry {
	e := s.audit.Entry(ctx, action, user.AccountID, string(audience))
	e.Actor, e.Address = "", address
	if user.ID != "" {
		e.Actor = "user:" + user.ID
	}
	return e
}

// auditRefusedLogin writes a refused login to the audit log. user is zero if it does not
// exist or was not looked up. The username in the request is not written, because people
// mistakenly enter passwords there.
func (s *Service) auditRefusedLogin(ctx context.Context, audience Audience, c Credentials, user User, err error) {
	if account, ok := s.Tree().ByDomain(c.Domain); ok && user.AccountID == "" {
		user.AccountID = account.ID
	}
	outcome := "wrong_password"
	switch {
	case errors.Is(err, errOTPRequired), errors.Is(err, errOTPEnrol):
		return // the client now prompts for a one-time password and logs in again
	case user.ID == "":
		outcome = "unknown_user"
	case errors.Is(err, errOTPWrong):
		outcome = "wrong_otp"
	}
	s.auditFailedLogin(ctx, audience, c.Address, user, err, outcome)
}

// auditFailedLogin writes a login that failed with err to the audit log, with the outcome, or
// as limited if err is fault.KindLimited.
func (s *Service) auditFailedLogin(ctx context.Context, audience Audience, address string, user User, err error,
	outcome string) {
	switch fault.KindOf(err) {
	case fault.KindUnauthenticated, fault.KindForbidden:
		e := s.loginEntry(ctx, audit.LoginFailed, audience, address, user)
		e.Outcome = outcome
		s.audit.Report(ctx, e)
	case fault.KindLimited:
		e := s.loginEntry(ctx, audit.LoginLocked, audience, address, user)
		e.Outcome = "limited"
		s.audit.ReportOnce(ctx, e)
	}
}

var errWrongLogin = fault.Unauthenticated("Wrong username, password or domain")

// authenticateUser checks the credentials and returns their user. It writes a refusal to
// the audit log.
func (s *Service) authenticateUser(ctx context.Context, audience Audience, c Credentials) (User, error) {
	c, err := s.withDomain(ctx, c)
	if err != nil {
		return User{}, err
	}

	user, err := s.checkCredentials(ctx, c)
	if err == nil {
		err = s.checkOTP(ctx, c, user)
	}
	if err != nil {
		s.auditRefusedLogin(ctx, audience, c, user, err)
		return User{}, err
	}
	s.addresses.add(ctx, c.attempt(), user.ID)
	return user, nil
}

// withDomain returns the credentials with the domain of the one user that has the username,
// if they name none. If several users or none have it, no domain is found: the login fails as
// with a wrong password, after the same time.
func (s *Service) withDomain(ctx context.Context, c Credentials) (Credentials, error) {
	if c.Domain != "" {
		return c, nil
	}
	row := s.db.QueryRowContext(ctx, `SELECT CASE WHEN COUNT(*) = 1 THEN MIN(a.domain) ELSE '' END FROM identity_users u
		JOIN identity_accounts a ON a.id = u.account_id WHERE u.username_key = $1`, strings.ToLower(c.Username))
	domain, err := sqldb.Find(row, sql.ErrNoRows, "reading the domain of a user", sqldb.ScanColumn[string])
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return c, err
	}
	c.Domain = domain
	return c, nil
}

// checkCredentials checks username, domain and password and returns the user. If the user
// exists, it is returned with an error, too.
func (s *Service) checkCredentials(ctx context.Context, c Credentials) (User, error) {
	if err := c.check(); err != nil {
		return User{}, err
	}
	a := c.attempt()
	locked, err := s.checkLimitsOrLock(ctx, a)
	if err != nil {
		return User{}, err // before waiting for a hash slot
	}
	if locked && c.OTP == "" {
		return User{}, s.lockedError(ctx, a)
	}
	if err := s.limitTokens(ctx, loginAttempts, a.user+"\x00"+a.network,
		attemptsFactor*s.cfg.UserTokensPerMinute); err != nil {
		return User{}, err // a correct password costs a hash too
	}
	user, storedHash, err := s.findUserByLogin(ctx, c)
	if err != nil {
		return User{}, err
	}
	if locked {
		a.proven, err = s.matchesOTP(ctx, user.ID, c.OTP)
		if err != nil {
			return User{}, err
		}
		if !a.proven {
			return user, s.lockedError(ctx, a)
		}
	}
	matches, err := s.checkPassword(ctx, a, storedHash, c.Password)
	if err != nil {
		return user, err
	}
	if !matches || user.ID == "" {
		if err := s.countFailure(ctx, a); err != nil {
			return user, err
		}
		return user, errWrongLogin
	}
	return user, nil
}

// checkPassword waits for a hash slot, checks the limits again, because the logins that
// waited before this one may have exhausted them, and verifies the password.
func (s *Service) checkPassword(ctx context.Context, a attempt, storedHash, password string) (bool, error) {
	client := slotClient{known: s.addresses.isKnown(ctx, a), network: a.network}
	releaseSlot, err := s.passwords.slots.acquire(ctx, client)
	if err != nil {
		return false, err
	}
	defer releaseSlot()
	if err := s.checkLimits(ctx, a); err != nil {
		return false, err
	}
	matches, err := verifyPassword(storedHash, password)
	if err != nil {
		return false, fault.Internal(err, "The password could not be checked")
	}
	return matches, nil
}

func (c Credentials) check() error {
	var bad problems
	for _, field := range []struct{ name, value string }{
		{"username", c.Username}, {"password", c.Password},
	} {
		if field.value == "" {
			bad.add(field.name, codeRequired, field.name+" is required")
		}
	}
	return bad.asError("Invalid login")
}

// findUserByLogin returns the user with the username and domain, and its password hash.
// If there is none, it returns a zero User and the decoy hash.
func (s *Service) findUserByLogin(ctx context.Context, c Credentials) (user User, storedHash string, err error) {
	domain, username := strings.ToLower(c.Domain), strings.ToLower(c.Username)
	row := s.db.QueryRowContext(ctx, `SELECT u.password, `+userColumns+` FROM identity_users u
		JOIN identity_accounts a ON a.id = u.account_id
		WHERE a.domain = $1 AND u.username_key = $2`, domain, username)
	user, err = sqldb.Find(row, sql.ErrNoRows, "reading a user",
		func(scan sqldb.ScanFunc) (User, error) { return scanUser(scan, &storedHash) })
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, s.passwords.decoy, nil
	}
	return user, storedHash, err
}

// EventsLogin checks the credentials and returns a channel token, which is for the events
// audience and has the filter f; an empty f does not restrict. An account of f that the
// user cannot access and one that does not exist cause the same error.
func (s *Service) EventsLogin(ctx context.Context, c Credentials,
	f Filter) (token string, expiresIn time.Duration, err error) {
	defer func() { s.countLogin(AudienceEvents, err) }()
	user, err := s.authenticateUser(ctx, AudienceEvents, c)
	if err != nil {
		return "", 0, err
	}
	filter, err := s.channelFilter(ctx, user, f)
	if err != nil {
		return "", 0, err
	}
	return s.issueChannelToken(ctx, user, filter, time.Time{},
		s.loginEntry(ctx, audit.Login, AudienceEvents, c.Address, user))
}

// EventsExchange issues a channel token for the principal of a portal token, or of an API
// key with ScopeSubscribe, at the address. The channel token ends when the portal token's
// session ends, or when the key expires or is deleted.
func (s *Service) EventsExchange(ctx context.Context, p *Principal, address string,
	f Filter) (token string, expiresIn time.Duration, err error) {
	defer func() { s.countLogin(AudienceEvents, err) }()
	if p.IsKey() {
		return s.exchangeAPIKey(ctx, p, f)
	}
	return s.exchangePortalToken(ctx, p, address, f)
}

func (s *Service) exchangeAPIKey(ctx context.Context, p *Principal,
	f Filter) (token string, lifetime time.Duration, err error) {
	if err := p.RequireScope(ScopeSubscribe); err != nil {
		return "", 0, err
	}
	if err := s.CheckPrincipal(p); err != nil {
		return "", 0, fault.Unauthenticated("The API key is not valid")
	}
	if err := checkChannelRole(p.Role); err != nil {
		return "", 0, err
	}
	subject := User{ID: p.KeyID, AccountID: p.AccountID, Role: RoleUser}
	if err := s.limitTokens(ctx, tokenKeys, p.KeyID, s.cfg.KeyTokensPerMinute); err != nil {
		return "", 0, err
	}
	filter, err := s.checkedFilter(ctx, subject, f)
	if err != nil {
		return "", 0, err
	}
	filter.Key = p.KeyID
	token, lifetime, err = s.issueChannelToken(ctx, subject, filter,
		s.directory.Load().keysByID[p.KeyID].ExpiresAt,
		s.audit.Entry(ctx, audit.Login, p.AccountID, string(AudienceEvents)))
	if errors.Is(err, errSessionEnded) {
		err = fault.Unauthenticated("The API key has expired")
	}
	return token, lifetime, err
}

func (s *Service) exchangePortalToken(ctx context.Context, p *Principal, address string,
	f Filter) (token string, lifetime time.Duration, err error) {
	if p.Audience != AudienceAPI || p.FamilyID == "" {
		return "", 0, fault.Forbidden("A channel token is issued for a portal token")
	}
	user, err := s.FindUser(ctx, p.UserID)
	if fault.KindOf(err) == fault.KindNotFound {
		return "", 0, errSessionEnded
	}
	if err != nil {
		return "", 0, err
	}
	filter, err := s.channelFilter(ctx, user, f)
	if err != nil {
		return "", 0, err
	}
	filter.Family = p.FamilyID
	sessionEnd, err := s.extendFamily(ctx, p.FamilyID, s.cfg.Now().Add(s.cfg.EventsTTL))
	if err != nil {
		return "", 0, err
	}
	return s.issueChannelToken(ctx, user, filter, sessionEnd,
		s.loginEntry(ctx, audit.Login, AudienceEvents, address, user))
}

// issueChannelToken writes entry to the audit log and returns a channel token that
// expires at latestEnd (zero: no bound) at the latest.
func (s *Service) issueChannelToken(ctx context.Context, user User, filter claims, latestEnd time.Time,
	entry audit.Entry) (token string, lifetime time.Duration, err error) {
	lifetime, err = s.cappedLifetime(latestEnd, s.cfg.EventsTTL)
	if err != nil {
		return "", 0, err
	}
	if err := s.audit.Record(ctx, entry); err != nil {
		return "", 0, err
	}
	token, err = s.sign(user, AudienceEvents, lifetime, filter)
	return token, lifetime, err
}

// checkChannelRole returns fault.KindForbidden for a role that sees no events.
func checkChannelRole(role Role) error {
	if role == RoleAuditor {
		return fault.Forbidden("An auditor sees no events")
	}
	return nil
}

// channelFilter counts a channel login of a user and returns the claims with its filter.
// Returns fault.KindLimited above UserTokensPerMinute.
func (s *Service) channelFilter(ctx context.Context, user User, f Filter) (claims, error) {
	if err := checkChannelRole(user.Role); err != nil {
		return claims{}, err
	}
	if err := s.limitTokens(ctx, tokenChannel, user.ID, s.cfg.UserTokensPerMinute); err != nil {
		return claims{}, err
	}
	return s.checkedFilter(ctx, user, f)
}

// checkedFilter validates the filter of a channel login of the subject and returns the
// claims that have it.
func (s *Service) checkedFilter(ctx context.Context, subject User, f Filter) (claims, error) {
	distinct, err := s.CheckFilter(ctx, subject.AccountID, f)
	if err != nil {
		return claims{}, err
	}
	c, err := s.filterClaim(ctx, subject, distinct)
	c.affinity = s.affinityHeader(ctx, subject.AccountID, distinct)
	return c, err
}

func (s *Service) countLogin(audience Audience, err error) {
	result := resultError
	switch fault.KindOf(err) {
	case "":
		result = resultOK
	case fault.KindUnauthenticated:
		result = resultWrong
	case fault.KindLimited:
		result = resultLimited
	case fault.KindInvalid:
		result = resultInvalid
	}
	s.metrics.logins.WithLabelValues(string(audience), result).Inc()
}
