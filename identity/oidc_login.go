package identity

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"trunkline/audit"
	"trunkline/identity/oidc"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// errNoProvider is returned by operations that need auth.oidc.
var errNoProvider = fault.NotFound("Logins with OpenID Connect are not set up (auth.oidc)")

// IsProviderToken reports whether a provider is configured and the token names an issuer
// other than Trunkline. The token is not verified.
func (c *Credentials) IsProviderToken(token string) bool {
	tokenIssuer := oidc.IssuerOf(token)
	return c.provider != nil && tokenIssuer != "" && tokenIssuer != issuer
}

// LoginByToken is Login with an ID or access token of the OpenID Connect provider.
// The session ends when the token expires.
func (c *Credentials) LoginByToken(ctx context.Context, token, address string) (*Session, error) {
	return c.loginByProvider(ctx, address, func() (oidc.Identity, error) { return c.provider.Verify(ctx, token) })
}

// HasOIDC reports whether users can log in by an OpenID Connect provider.
func (c *Credentials) HasOIDC() bool { return c.provider != nil }

// CanBeginOIDC reports whether browsers can log in at the provider by code flow.
func (c *Credentials) CanBeginOIDC() bool { return c.provider != nil && c.provider.CanBegin() }

// BeginOIDC begins a browser's login at the provider and returns the address at the
// provider to which the browser is redirected.
func (c *Credentials) BeginOIDC(ctx context.Context) (flow oidc.Flow, address string, err error) {
	if !c.CanBeginOIDC() {
		return oidc.Flow{}, "", errNoProvider
	}
	return c.provider.Begin(ctx)
}

// FinishOIDC is Login with the authorization code in the browser's redirect from the
// provider.
func (c *Credentials) FinishOIDC(ctx context.Context, flow oidc.Flow, code, address string) (*Session, error) {
	if !c.CanBeginOIDC() {
		return nil, errNoProvider
	}
	return c.loginByProvider(ctx, address, func() (oidc.Identity, error) {
		id, err := c.provider.Finish(ctx, flow, code)
		id.Expires = time.Time{} // the user was present: the session lasts as long as after a password
		return id, err
	})
}

func (c *Credentials) loginByProvider(ctx context.Context, address string,
	verify func() (oidc.Identity, error)) (session *Session, err error) {
	defer func() { c.metrics.countLogin(AudienceAPI, err) }()
	user, id, err := c.authenticateByProvider(ctx, AudienceAPI, address, verify)
	if err != nil {
		return nil, err
	}
	return c.tokens.beginSession(ctx, user, address, id.Expires)
}

// ChannelLoginByToken is EventsLogin with an ID or access token of the OpenID Connect
// provider. The channel token expires with that token at the latest.
func (c *Credentials) ChannelLoginByToken(ctx context.Context, token, address string,
	f Filter) (channelToken string, expiresIn time.Duration, err error) {
	defer func() { c.metrics.countLogin(AudienceEvents, err) }()

	user, id, err := c.authenticateByProvider(ctx, AudienceEvents, address,
		func() (oidc.Identity, error) { return c.provider.Verify(ctx, token) })
	if err != nil {
		return "", 0, err
	}

	extra, err := c.tokens.channelClaims(ctx, user, f)
	if err != nil {
		return "", 0, err
	}

	return c.tokens.issueChannelToken(ctx, user, extra, id.Expires,
		loginEntry(ctx, c.audit, audit.Login, AudienceEvents, address, user))
}

// authenticateByProvider calls verify and returns the user of the identity. It writes a
// refusal to the audit log and counts it against the limits of the address.
func (c *Credentials) authenticateByProvider(ctx context.Context, audience Audience, address string,
	verify func() (oidc.Identity, error)) (user User, id oidc.Identity, err error) {
	if c.provider == nil {
		return User{}, id, errNoProvider
	}

	// Which user it is shows only after the verification, so that the address alone is limited.
	limits := newLoginAttempt("", "", address).addressLimits()
	err = limitedError(c.limits.limiter.Wait(ctx, limits...))
	if err == nil {
		id, err = verify()
		if err == nil {
			user, err = c.findOrCreateProviderUser(ctx, id, address)
		}

		switch fault.KindOf(err) {
		case fault.KindUnauthenticated, fault.KindForbidden:
			limitErr := limitedError(c.limits.limiter.Fail(ctx, limits...))
			if limitErr != nil {
				err = limitErr
			}
		}
	}
	if err != nil {
		outcome := "wrong_token"
		fields := fault.As(err).Fields
		if len(fields) > 0 {
			outcome = fields[0].Code
		}

		c.auditFailedLogin(ctx, audience, address, user, err, outcome)
		return User{}, id, err
	}

	return user, id, nil
}

// forbiddenClaim returns the error for an authenticated user whose claim forbids the
// login.
func forbiddenClaim(claim, code, message string) error {
	return fault.NewField(fault.KindForbidden, claim, code, message)
}

// findOrCreateProviderUser returns the user of an identity, with the role and extension of
// its claims: the first login creates the user, later ones update it. If the user exists,
// it is returned with an error, too.
func (c *Credentials) findOrCreateProviderUser(ctx context.Context, id oidc.Identity, address string) (User, error) {
	account, err := resolveClaimedAccount(ctx, c.db, id.Account)
	if fault.KindOf(err) == fault.KindNotFound {
		return User{}, forbiddenClaim(c.cfg.OIDC.AccountClaim, "unknown_account",
			"The claim \""+c.cfg.OIDC.AccountClaim+"\" of the token names the account "+quote(
				id.Account)+", which does not exist")
	}
	if err != nil {
		return User{}, err
	}

	user, err := findProviderUser(ctx, c.db, id, account.ID)
	switch {
	case errors.Is(err, errUnknownSubject):
		user, err = c.createProviderUser(ctx, id, account, address)
	case err == nil:
		user, err = c.updateProviderUser(ctx, user, id, address)
	}

	if err != nil {
		user.AccountID = cmp.Or(user.AccountID, account.ID)
		return user, err
	}

	return user, c.checkSecondFactor(ctx, user, id)
}

// checkSecondFactor enforces RequireOTP for users who log in at the provider.
func (c *Credentials) checkSecondFactor(ctx context.Context, user User, id oidc.Identity) error {
	if user.Role != RoleAdmin || id.SecondFactor {
		return nil
	}
	required, err := c.OTPRequired(ctx, user.AccountID)
	if err != nil || !required {
		return err
	}
	return forbiddenClaim("amr", "second_factor",
		"The account requires a second factor of administrators, and the claim \"amr\" of the token has none of mfa, otp and hwk")
}

// errUnknownSubject is returned for a subject for which no user was ever created.
var errUnknownSubject = errors.New("no user of the provider's subject")

// findProviderUser returns the user of an identity in the account that its claim names. What
// other accounts have under the same subject does not count: their administrators could
// let a deleted user in again, or shut a future one out. Returns fault.KindForbidden for a
// deleted user.
func findProviderUser(ctx context.Context, db sqldb.Runner, id oidc.Identity,
	accountID string) (User, error) {
	if !utf8.ValidString(id.Subject) || strings.ContainsRune(id.Subject, 0) {
		return User{}, forbiddenClaim("sub", codeInvalid, "The claim \"sub\" of the token is not valid text")
	}

	var userID string
	// Rows without an account are of users that were deleted before rows had one.
	row := db.QueryRowContext(ctx, `SELECT user_id FROM identity_oidc_subjects
		WHERE issuer = $1 AND subject = $2 AND account_id IN ($3, '') ORDER BY account_id DESC LIMIT 1`, id.Issuer,
		id.Subject, accountID)
	if err := sqldb.FindInto(row, errUnknownSubject, "reading a provider's user", &userID); err != nil {
		return User{}, err
	}

	user, err := findUserByID(ctx, db, userID)
	if fault.KindOf(err) == fault.KindNotFound {
		return User{ID: userID},
			forbiddenClaim("sub", "deleted_user",
				"The user was deleted: an administrator has to create it again, with the token's \"sub\" as oidc_subject")
	}

	return user, err
}

// roleFromClaims returns the role in the claims, or current if no role claim is
// configured.
func (c *Credentials) roleFromClaims(id oidc.Identity, current Role) (Role, error) {
	if c.cfg.OIDC.RoleClaim == "" {
		return current, nil
	}

	for _, role := range knownRoles {
		if slices.Contains(id.Roles, string(role)) {
			return role, nil
		}
	}

	return "", forbiddenClaim(c.cfg.OIDC.RoleClaim, "unknown_role",
		"The claim \""+c.cfg.OIDC.RoleClaim+"\" of the token has none of "+joinRoles(", "))
}

func (c *Credentials) createProviderUser(ctx context.Context, id oidc.Identity, account Account,
	address string) (User, error) {
	n := NewUser{Username: id.Username, OIDCSubject: id.Subject}
	if id.PresenceID != nil {
		n.PresenceID = *id.PresenceID
	}

	var err error
	n.Role, err = c.roleFromClaims(id, RoleUser)
	if err != nil {
		return User{}, err
	}

	var bad fieldProblems
	bad.checkText("preferred_username", n.Username, maxNameLength, printable)
	bad.checkUserFields("", n.PresenceID, n.Role, n.Limits)

	if len(bad) > 0 {
		return User{}, forbiddenClaim(bad[0].Field, "wrong_claim",
			"The token's claims are not valid for a user: "+bad[0].Message)
	}

	user := buildUser(n, c.cfg.storedNow())

	hash, err := c.passwords.hashRandom(ctx)
	if err != nil {
		return User{}, err
	}

	entry := c.audit.Entry(ctx, audit.UserCreate, account.ID, "user:"+user.ID)
	entry.Actor, entry.Address = "user:"+user.ID, address

	var created bool
	var quotaErr error
	err = c.directory.changes.tx(ctx, changeRevocations, func(tx *sql.Tx, rev int64) error {
		found, err := findProviderUser(ctx, tx, id, account.ID)
		created = errors.Is(err, errUnknownSubject)
		if !created { // a concurrent login created it
			user = found
			return err
		}

		user.AccountID = account.ID
		quotaErr = checkQuota(ctx, tx, "identity_users", account.ID, "users", c.cfg.Accounts.Users, "account.users")
		if quotaErr != nil {
			return quotaErr
		}
		if err := insertUser(ctx, tx, rev, user, hash); err != nil {
			return err
		}
		if err := bindSubject(ctx, tx, id.Issuer, user); err != nil {
			return err
		}

		return c.audit.Insert(ctx, tx, entry)
	})
	if fault.KindOf(err) == fault.KindConflict && quotaErr != nil {
		return User{}, forbiddenClaim(c.cfg.OIDC.AccountClaim, "full", fault.As(err).Message)
	}
	if fault.KindOf(err) == fault.KindConflict {
		return User{}, forbiddenClaim("preferred_username", codeTaken,
			fault.As(err).Message+": an administrator has to change or delete that user")
	}
	if err != nil {
		return User{}, err
	}

	if created {
		c.audit.AfterCommit(ctx, entry)
	}

	return user, nil
}

// bindSubject stores user as the user of its OIDCSubject in its account. Returns
// fault.KindConflict if the subject has another user there.
func bindSubject(ctx context.Context, tx *sql.Tx, issuer string, user User) error {
	err := conflictIfExists(ctx, tx, fault.Conflict("The provider's subject has another user"),
		"reading a provider's user",
		`SELECT 1 FROM identity_oidc_subjects o JOIN identity_users u ON u.id = o.user_id
		WHERE o.issuer = $1 AND o.subject = $2 AND o.account_id = $3`, issuer, user.OIDCSubject, user.AccountID)
	if err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx,
		`INSERT INTO identity_oidc_subjects (issuer, subject, account_id, user_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT (issuer, subject, account_id) DO UPDATE SET user_id = excluded.user_id`, issuer, user.OIDCSubject,
		user.AccountID, user.ID)

	return sqldb.Wrap(err, "storing a provider's user")
}

func (c *Credentials) updateProviderUser(ctx context.Context, user User, id oidc.Identity,
	address string) (User, error) {
	update := UserUpdate{PresenceID: user.PresenceID}
	if id.PresenceID != nil {
		update.PresenceID = *id.PresenceID
	}

	var err error
	update.Role, err = c.roleFromClaims(id, user.Role)
	if err != nil {
		return user, err
	}

	if update.Role == user.Role && update.PresenceID == user.PresenceID {
		return user, nil
	}
	// A new role has no limits: those of another role are invalid (checkLimits).
	if update.Role == user.Role {
		update.Limits = user.Limits
	}

	updated, err := c.directory.UpdateUser(
		audit.WithCaller(ctx, audit.Caller{Actor: "user:" + user.ID, Address: address}),
		user.ID, update)
	switch fault.KindOf(err) {
	case fault.KindConflict, fault.KindInvalid:
		return user, forbiddenClaim(c.cfg.OIDC.PresenceClaim, "wrong_claim",
			"The token's claims do not fit the user: "+firstFieldMessage(err))
	}

	return updated, err
}

// firstFieldMessage returns the message of an error's first field, or of the error itself
// if it has no fields.
func firstFieldMessage(err error) string {
	f := fault.As(err)
	if len(f.Fields) > 0 {
		return f.Fields[0].Message
	}
	return f.Message
}

// CheckProviderToken checks that ChannelLoginByToken would accept the token, which it counts
// and writes to the audit log where not. Like a login it creates or updates the user.
func (c *Credentials) CheckProviderToken(ctx context.Context, token, address string) error {
	_, _, err := c.authenticateByProvider(ctx, AudienceEvents, address,
		func() (oidc.Identity, error) { return c.provider.Verify(ctx, token) })
	return err
}
