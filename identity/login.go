package identity

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Login checks the credentials and begins a session of tokens for the api audience. A
// wrong user, domain or password take the same time and return the same error. After too
// many of them the error is fault.KindLimited.
func (s *Service) Login(ctx context.Context, c Credentials) (session *Session, err error) {
	defer func() { s.countLogin(AudienceAPI, err) }()
	user, err := s.check(ctx, AudienceAPI, c)
	if err != nil {
		return nil, err
	}
	s.ensurePortalHA1(ctx, user, c.Password)
	return s.beginSession(ctx, user, c.Address, time.Time{})
}

// beginSession creates a session that lasts until ends at most (zero: no bound). It
// fails if the login cannot be written to the audit log.
func (s *Service) beginSession(ctx context.Context, user User, address string, ends time.Time) (*Session, error) {
	session, err := s.newSession(ctx, s.db, user, sessionOf{family: sqldb.NewID(), ends: ends})
	if err != nil {
		return nil, err
	}
	if err := s.audit.Record(ctx, s.loginEntry(ctx, audit.Login, AudienceAPI, address, user)); err != nil {
		return nil, err
	}
	return session, nil
}

func (s *Service) loginEntry(ctx context.Context, action audit.Action, door Audience, address string, user User) audit.Entry {
	e := s.audit.Entry(ctx, action, user.AccountID, string(door))
	e.Actor, e.Address = "", address
	if user.ID != "" {
		e.Actor = "user:" + user.ID
	}
	return e
}

// reportRefused writes a refused login to the audit log. user is zero if it does not
// exist or was not looked up. The username in the request is not written: people type
// passwords there.
func (s *Service) reportRefused(ctx context.Context, door Audience, c Credentials, user User, err error) {
	if account, ok := s.Tree().ByDomain(c.Domain); ok && user.AccountID == "" {
		user.AccountID = account.ID
	}
	outcome := "wrong_password"
	switch {
	case errors.Is(err, errOTPRequired), errors.Is(err, errOTPEnrol):
		return // the client asks its user for one and logs in again
	case user.ID == "":
		outcome = "unknown_user"
	case errors.Is(err, errOTPWrong):
		outcome = "wrong_otp"
	}
	s.reportLogin(ctx, door, c.Address, user, err, outcome)
}

// reportLogin writes a login that failed with err to the audit log, with the outcome, or
// as limited if err is fault.KindLimited.
func (s *Service) reportLogin(ctx context.Context, door Audience, address string, user User, err error, outcome string) {
	switch fault.KindOf(err) {
	case fault.KindUnauthenticated, fault.KindForbidden:
		e := s.loginEntry(ctx, audit.LoginFailed, door, address, user)
		e.Outcome = outcome
		s.audit.Report(ctx, e)
	case fault.KindLimited:
		e := s.loginEntry(ctx, audit.LoginLocked, door, address, user)
		e.Outcome = "limited"
		s.audit.ReportOnce(ctx, e)
	}
}

var errWrongLogin = fault.Unauthenticated("Wrong username, password or domain")

// check returns the user of the credentials, and writes a refusal to the audit log.
func (s *Service) check(ctx context.Context, door Audience, c Credentials) (User, error) {
	user, err := s.checkCredentials(ctx, c)
	if err == nil {
		err = s.checkOTP(ctx, c, user)
	}
	if err != nil {
		s.reportRefused(ctx, door, c, user, err)
		return User{}, err
	}
	s.addresses.add(ctx, c.attempt(), user.ID)
	return user, nil
}

// checkCredentials returns the user of the credentials; with an error too, if the user
// was found.
func (s *Service) checkCredentials(ctx context.Context, c Credentials) (User, error) {
	if err := c.validate(); err != nil {
		return User{}, err
	}
	a := c.attempt()
	if err := s.allow(ctx, a); err != nil {
		return User{}, err // without queueing for a hash
	}
	user, stored, err := s.findLogin(ctx, c)
	if err != nil {
		return User{}, err
	}
	right, err := s.checkPassword(ctx, a, stored, c.Password)
	if err != nil {
		return user, err
	}
	if !right || user.ID == "" {
		if err := s.failed(ctx, a); err != nil {
			return user, err
		}
		return user, errWrongLogin
	}
	return user, nil
}

// checkPassword waits for a hash slot and then checks the limits again: logins ahead of
// it in the queue may have used them up.
func (s *Service) checkPassword(ctx context.Context, a attempt, stored, password string) (bool, error) {
	done, err := s.passwords.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if err := s.allow(ctx, a); err != nil {
		return false, err
	}
	right, err := matches(stored, password)
	if err != nil {
		return false, fault.Internal(err, "The password could not be checked")
	}
	return right, nil
}

func (c Credentials) validate() error {
	var bad problems
	for _, field := range []struct{ name, value string }{
		{"username", c.Username}, {"password", c.Password}, {"domain", c.Domain},
	} {
		if field.value == "" {
			bad.add(field.name, codeRequired, field.name+" is required")
		}
	}
	return bad.fault("Invalid login")
}

// findLogin returns the user and the hash of its password; the decoy and no user if
// there is no such user.
func (s *Service) findLogin(ctx context.Context, c Credentials) (user User, stored string, err error) {
	domain, username := strings.ToLower(c.Domain), strings.ToLower(c.Username)
	row := s.db.QueryRowContext(ctx, `SELECT u.password, `+userColumns+` FROM identity_users u
		JOIN identity_accounts a ON a.id = u.account_id
		WHERE a.domain = $1 AND u.username_key = $2`, domain, username)
	user, err = sqldb.Find(row, sql.ErrNoRows, "reading a user", func(scan sqldb.ScanFunc) (User, error) { return scanUser(scan, &stored) })
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, s.passwords.decoy, nil
	}
	return user, stored, err
}

// EventsLogin checks the credentials and returns a channel token: for the events
// audience, with the filter f; an empty f does not restrict. An account of f that the
// user cannot access and one that does not exist give the same error.
func (s *Service) EventsLogin(ctx context.Context, c Credentials, f Filter) (token string, expiresIn time.Duration, err error) {
	defer func() { s.countLogin(AudienceEvents, err) }()
	user, err := s.check(ctx, AudienceEvents, c)
	if err != nil {
		return "", 0, err
	}
	filter, err := s.channelFilter(ctx, user.AccountID, f)
	if err != nil {
		return "", 0, err
	}
	return s.issueChannelToken(ctx, user, filter, time.Time{}, s.loginEntry(ctx, audit.Login, AudienceEvents, c.Address, user))
}

// EventsExchange returns a channel token for a portal token or an API key with
// ScopeSubscribe, used at the address. The channel token ends with the logout of the
// portal token's session, or with the key.
func (s *Service) EventsExchange(ctx context.Context, p *Principal, address string, f Filter) (token string, expiresIn time.Duration, err error) {
	defer func() { s.countLogin(AudienceEvents, err) }()
	if p.IsKey() {
		return s.exchangeKey(ctx, p, f)
	}
	return s.exchange(ctx, p, address, f)
}

func (s *Service) exchangeKey(ctx context.Context, p *Principal, f Filter) (token string, life time.Duration, err error) {
	if err := p.RequireScope(ScopeSubscribe); err != nil {
		return "", 0, err
	}
	if err := s.Valid(p); err != nil {
		return "", 0, fault.Unauthenticated("The API key is not valid")
	}
	filter, err := s.channelFilter(ctx, p.AccountID, f)
	if err != nil {
		return "", 0, err
	}
	filter.Key = p.KeyID
	token, life, err = s.issueChannelToken(ctx, User{ID: p.KeyID, AccountID: p.AccountID, Role: RoleUser}, filter,
		s.directory.Load().keys[p.KeyID].ExpiresAt, s.audit.Entry(ctx, audit.Login, p.AccountID, string(AudienceEvents)))
	if errors.Is(err, errSessionEnded) {
		err = fault.Unauthenticated("The API key has expired")
	}
	return token, life, err
}

func (s *Service) exchange(ctx context.Context, p *Principal, address string, f Filter) (token string, life time.Duration, err error) {
	if p.Audience != AudienceAPI || p.FamilyID == "" {
		return "", 0, fault.Forbidden("A channel token is made from a portal token")
	}
	user, err := s.FindUser(ctx, p.UserID)
	if fault.KindOf(err) == fault.KindNotFound {
		return "", 0, errSessionEnded
	}
	if err != nil {
		return "", 0, err
	}
	filter, err := s.channelFilter(ctx, user.AccountID, f)
	if err != nil {
		return "", 0, err
	}
	filter.Family = p.FamilyID
	ends, err := s.extendFamily(ctx, p.FamilyID, s.cfg.Now().Add(s.cfg.EventsTTL))
	if err != nil {
		return "", 0, err
	}
	return s.issueChannelToken(ctx, user, filter, ends, s.loginEntry(ctx, audit.Login, AudienceEvents, address, user))
}

// issueChannelToken writes entry to the audit log and returns a channel token that is
// valid until ends at most (zero: no bound).
func (s *Service) issueChannelToken(ctx context.Context, user User, filter claims, ends time.Time, entry audit.Entry) (token string, life time.Duration, err error) {
	if life, err = s.lifeUntil(ends, s.cfg.EventsTTL); err != nil {
		return "", 0, err
	}
	if err := s.audit.Record(ctx, entry); err != nil {
		return "", 0, err
	}
	token, err = s.sign(user, AudienceEvents, life, filter)
	return token, life, err
}

// channelFilter checks the filter of a channel login and returns the claims that
// carry it.
func (s *Service) channelFilter(ctx context.Context, accountID string, f Filter) (claims, error) {
	distinct, err := s.CheckFilter(ctx, accountID, f)
	if err != nil {
		return claims{}, err
	}
	c, err := s.filterClaim(ctx, distinct)
	c.affinity = s.affinityOf(ctx, accountID, distinct)
	return c, err
}

func (s *Service) seesAll(account string, ids []string) bool {
	tree := s.Tree()
	return !slices.ContainsFunc(ids, func(id string) bool { return !tree.Contains(account, id) })
}

func unique(list []string) []string {
	var kept []string
	seen := make(map[string]struct{}, len(list))
	for _, one := range list {
		if _, repeat := seen[one]; !repeat {
			seen[one] = struct{}{}
			kept = append(kept, one)
		}
	}
	return kept
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
