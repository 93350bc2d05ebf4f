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
func (c *Credentials) Login(ctx context.Context, r LoginRequest) (session *Session, err error) {
	defer func() { c.metrics.countLogin(AudienceAPI, err) }()

	user, err := c.authenticateUser(ctx, AudienceAPI, r)
	if err != nil {
		return nil, err
	}

	// An account that memory does not have yet is skipped: the next login stores the hash.
	account, ok := c.directory.Tree().Account(user.AccountID)
	if ok {
		c.phones.ensurePortalHA1(ctx, user, account.Domain, r.Password)
	}

	return c.tokens.beginSession(ctx, user, r.Address, time.Time{})
}

func loginEntry(ctx context.Context, log *audit.Log, action audit.Action, audience Audience, address string,
	user User) audit.Entry {
	e := log.Entry(ctx, action, user.AccountID, string(audience))
	e.Actor, e.Address = "", address
	if user.ID != "" {
		e.Actor = "user:" + user.ID
	}
	return e
}

// auditRefusedLogin writes a refused login to the audit log. user is zero if it does not
// exist or was not looked up. The username in the request is not written, because people
// mistakenly enter passwords there.
func (c *Credentials) auditRefusedLogin(ctx context.Context, audience Audience, r LoginRequest, user User, err error) {
	if account, ok := c.directory.Tree().ByDomain(r.Domain); ok && user.AccountID == "" {
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

	c.auditFailedLogin(ctx, audience, r.Address, user, err, outcome)
}

// auditFailedLogin writes a login that failed with err to the audit log, with the outcome, or
// as limited if err is fault.KindLimited.
func (c *Credentials) auditFailedLogin(ctx context.Context, audience Audience, address string, user User, err error,
	outcome string) {
	switch fault.KindOf(err) {
	case fault.KindUnauthenticated, fault.KindForbidden:
		e := loginEntry(ctx, c.audit, audit.LoginFailed, audience, address, user)
		e.Outcome = outcome
		c.audit.Report(ctx, e)
	case fault.KindLimited:
		e := loginEntry(ctx, c.audit, audit.LoginLocked, audience, address, user)
		e.Outcome = "limited"
		c.audit.ReportOnce(ctx, e)
	}
}

var errWrongLogin = fault.Unauthenticated("Wrong username, password or domain")

// authenticateUser checks the credentials and returns their user. It writes a refusal to
// the audit log.
func (c *Credentials) authenticateUser(ctx context.Context, audience Audience, r LoginRequest) (User, error) {
	r, err := c.withDomain(ctx, r)
	if err != nil {
		return User{}, err
	}

	user, err := c.checkCredentials(ctx, r)
	if err == nil {
		err = c.checkOTP(ctx, r, user)
	}
	if err != nil {
		c.auditRefusedLogin(ctx, audience, r, user, err)
		return User{}, err
	}

	c.limits.addresses.add(ctx, r.attempt(), user.ID)
	return user, nil
}

// withDomain returns the credentials with the domain of the one user that has the username,
// if they name none. If several users or none have it, no domain is found: the login fails as
// with a wrong password, after the same time.
func (c *Credentials) withDomain(ctx context.Context, r LoginRequest) (LoginRequest, error) {
	if r.Domain != "" {
		return r, nil
	}

	row := c.db.QueryRowContext(ctx, `SELECT CASE WHEN COUNT(*) = 1 THEN MIN(a.domain) ELSE '' END FROM identity_users u
		JOIN identity_accounts a ON a.id = u.account_id WHERE u.username_key = $1`, strings.ToLower(r.Username))
	domain, err := sqldb.Find(row, sql.ErrNoRows, "reading the domain of a user", sqldb.ScanColumn[string])
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return r, err
	}

	r.Domain = domain
	return r, nil
}

// checkCredentials checks username, domain and password and returns the user. If the user
// exists, it is returned with an error, too.
func (c *Credentials) checkCredentials(ctx context.Context, r LoginRequest) (User, error) {
	if err := r.check(); err != nil {
		return User{}, err
	}

	a := r.attempt()
	locked, err := c.limits.checkOrLock(ctx, a)
	if err != nil {
		return User{}, err // before waiting for a hash slot
	}

	if locked && r.OTP == "" {
		return User{}, c.limits.lockedError(ctx, a)
	}
	if err := limitTokens(ctx, c.limits.limiter, kindLoginAttempt, a.user+"\x00"+a.network,
		attemptsFactor*c.cfg.UserTokensPerMinute); err != nil {
		return User{}, err // a correct password costs a hash too
	}

	user, storedHash, err := c.findUserByLogin(ctx, r)
	if err != nil {
		return User{}, err
	}

	if locked {
		a.proven, err = c.matchesOTP(ctx, user.ID, r.OTP)
		if err != nil {
			return User{}, err
		}

		if !a.proven {
			return user, c.limits.lockedError(ctx, a)
		}
	}

	matches, err := c.checkPassword(ctx, a, storedHash, r.Password)
	if err != nil {
		return user, err
	}

	if !matches || user.ID == "" {
		if err := c.limits.countFailure(ctx, a); err != nil {
			return user, err
		}
		return user, errWrongLogin
	}

	return user, nil
}

// checkPassword waits for a hash slot, checks the limits again, because the logins that
// waited before this one may have exhausted them, and verifies the password.
func (c *Credentials) checkPassword(ctx context.Context, a loginAttempt, storedHash, password string) (bool, error) {
	client := slotClient{known: c.limits.addresses.knownOfAnyone(ctx, a), network: a.network}
	releaseSlot, err := c.passwords.slots.acquire(ctx, client)
	if err != nil {
		return false, err
	}
	defer releaseSlot()

	if err := c.limits.check(ctx, a); err != nil {
		return false, err
	}

	matches, err := verifyPassword(storedHash, password)
	if err != nil {
		return false, fault.Internal(err, "The password could not be checked")
	}

	return matches, nil
}

func (r LoginRequest) check() error {
	var bad fieldProblems
	for _, field := range []struct{ name, value string }{
		{"username", r.Username}, {"password", r.Password},
	} {
		if field.value == "" {
			bad.add(field.name, codeRequired, field.name+" is required")
		}
	}
	return bad.asError("Invalid login")
}

// findUserByLogin returns the user with the username and domain, and its password hash.
// If there is none, it returns a zero User and the decoy hash.
func (c *Credentials) findUserByLogin(ctx context.Context, r LoginRequest) (user User, storedHash string, err error) {
	domain, username := strings.ToLower(r.Domain), strings.ToLower(r.Username)
	row := c.db.QueryRowContext(ctx, `SELECT u.password, `+userColumns+` FROM identity_users u
		JOIN identity_accounts a ON a.id = u.account_id
		WHERE a.domain = $1 AND u.username_key = $2`, domain, username)
	user, err = sqldb.Find(row, sql.ErrNoRows, "reading a user",
		func(scan sqldb.ScanFunc) (User, error) { return scanUser(scan, &storedHash) })
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, c.passwords.decoy, nil
	}

	return user, storedHash, err
}

// EventsLogin checks the credentials and returns a channel token, which is for the events
// audience and has the filter f; an empty f does not restrict. An account of f that the
// user cannot access and one that does not exist cause the same error.
func (c *Credentials) EventsLogin(ctx context.Context, r LoginRequest,
	f Filter) (token string, expiresIn time.Duration, err error) {
	defer func() { c.metrics.countLogin(AudienceEvents, err) }()

	user, err := c.authenticateUser(ctx, AudienceEvents, r)
	if err != nil {
		return "", 0, err
	}

	extra, err := c.tokens.channelClaims(ctx, user, f)
	if err != nil {
		return "", 0, err
	}

	return c.tokens.issueChannelToken(ctx, user, extra, time.Time{},
		loginEntry(ctx, c.audit, audit.Login, AudienceEvents, r.Address, user))
}
