package identity

import (
	"cmp"
	"context"
	"crypto/rand"
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

// FromProvider reports whether the unverified issuer of a token is other than Trunkline,
// such as the OpenID Connect provider; false if no provider is configured.
func (s *Service) FromProvider(token string) bool {
	named := oidc.IssuerOf(token)
	return s.provider != nil && named != "" && named != issuer
}

// LoginByToken is Login with an ID or access token of the OpenID Connect provider.
// The session ends with the token.
func (s *Service) LoginByToken(ctx context.Context, token, address string) (*Session, error) {
	return s.loginByProvider(ctx, address, func() (oidc.Identity, error) { return s.provider.Verify(ctx, token) })
}

// HasOIDC reports whether users can log in by an OpenID Connect provider.
func (s *Service) HasOIDC() bool { return s.provider != nil }

// CanBeginOIDC reports whether browsers can log in at the provider.
func (s *Service) CanBeginOIDC() bool { return s.provider != nil && s.provider.CanBegin() }

// BeginOIDC begins a browser's login at the provider and returns the provider's
// address to which the browser goes.
func (s *Service) BeginOIDC(ctx context.Context) (flow oidc.Flow, address string, err error) {
	if !s.CanBeginOIDC() {
		return oidc.Flow{}, "", errNoProvider
	}
	return s.provider.Begin(ctx)
}

// FinishOIDC is Login with the code that the browser brings from the provider.
func (s *Service) FinishOIDC(ctx context.Context, flow oidc.Flow, code, address string) (*Session, error) {
	if !s.CanBeginOIDC() {
		return nil, errNoProvider
	}
	return s.loginByProvider(ctx, address, func() (oidc.Identity, error) {
		id, err := s.provider.Finish(ctx, flow, code)
		id.Expires = time.Time{} // the user was present: the session lasts as long as after a password
		return id, err
	})
}

func (s *Service) loginByProvider(ctx context.Context, address string, verify func() (oidc.Identity, error)) (session *Session, err error) {
	defer func() { s.countLogin(AudienceAPI, err) }()
	user, id, err := s.checkProvider(ctx, AudienceAPI, address, verify)
	if err != nil {
		return nil, err
	}
	return s.beginSession(ctx, user, address, id.Expires)
}

// EventsLoginByToken is EventsLogin with an ID or access token of the OpenID Connect
// provider. The channel token ends with it.
func (s *Service) EventsLoginByToken(ctx context.Context, token, address string, f Filter) (channel string, expiresIn time.Duration, err error) {
	defer func() { s.countLogin(AudienceEvents, err) }()
	user, id, err := s.checkProvider(ctx, AudienceEvents, address, func() (oidc.Identity, error) { return s.provider.Verify(ctx, token) })
	if err != nil {
		return "", 0, err
	}
	filter, err := s.channelFilter(ctx, user.AccountID, f)
	if err != nil {
		return "", 0, err
	}
	return s.issueChannelToken(ctx, user, filter, id.Expires, s.loginEntry(ctx, audit.Login, AudienceEvents, address, user))
}

// checkProvider returns the user of a verified identity, and writes a refusal to the
// audit log. Refusals count against the limits of the address.
func (s *Service) checkProvider(ctx context.Context, door Audience, address string,
	verify func() (oidc.Identity, error)) (user User, id oidc.Identity, err error) {
	if s.provider == nil {
		return User{}, id, errNoProvider
	}
	limits := newAttempt("", "", address).addressLimits()
	if err = limited(s.limiter.Wait(ctx, limits...)); err == nil {
		if id, err = verify(); err == nil {
			user, err = s.userOfProvider(ctx, id, address)
		}
		switch fault.KindOf(err) {
		case fault.KindUnauthenticated, fault.KindForbidden:
			if over := limited(s.limiter.Fail(ctx, limits...)); over != nil {
				err = over
			}
		}
	}
	if err != nil {
		outcome := "wrong_token"
		if fields := fault.As(err).Fields; len(fields) > 0 {
			outcome = fields[0].Code
		}
		s.reportLogin(ctx, door, address, user, err, outcome)
		return User{}, id, err
	}
	return user, id, nil
}

// notAllowed returns the error for an authenticated user that may not log in.
func notAllowed(claim, code, message string) error {
	return fault.OfField(fault.KindForbidden, claim, code, message)
}

// userOfProvider returns the user of an identity with the role and extension of its
// claims: the first login creates the user, later ones update it. With an error it also
// returns the user, if it was found.
func (s *Service) userOfProvider(ctx context.Context, id oidc.Identity, address string) (User, error) {
	account, err := resolve(ctx, s.db, id.Account)
	if fault.KindOf(err) == fault.KindNotFound {
		return User{}, notAllowed(s.cfg.OIDC.AccountClaim, "unknown_account",
			"The claim \""+s.cfg.OIDC.AccountClaim+"\" of the token names the account "+quote(id.Account)+", which does not exist")
	}
	if err != nil {
		return User{}, err
	}
	user, err := s.findProviderUser(ctx, s.db, id)
	switch {
	case errors.Is(err, errNotBound):
		user, err = s.createProviderUser(ctx, id, account, address)
	case err == nil && user.AccountID != account.ID:
		err = notAllowed(s.cfg.OIDC.AccountClaim, "other_account", "The token names another account than that of the user: an administrator has to delete the user and create it there")
	case err == nil:
		user, err = s.updateProviderUser(ctx, user, id, address)
	}
	if err != nil {
		user.AccountID = cmp.Or(user.AccountID, account.ID)
		return user, err
	}
	return user, s.checkSecondFactor(ctx, user, id)
}

// checkSecondFactor enforces RequireOTP for users without a password.
func (s *Service) checkSecondFactor(ctx context.Context, user User, id oidc.Identity) error {
	if user.Role != RoleAdmin || id.SecondFactor {
		return nil
	}
	required, err := s.OTPRequired(ctx, user.AccountID)
	if err != nil || !required {
		return err
	}
	return notAllowed("amr", "second_factor", "The account requires a second factor of administrators, and the claim \"amr\" of the token has none of mfa, otp and hwk")
}

// errNotBound is returned for a subject for which no user was ever created.
var errNotBound = errors.New("no user of the provider's subject")

// findProviderUser returns the user of an identity. Returns fault.KindForbidden for a
// deleted user.
func (s *Service) findProviderUser(ctx context.Context, db sqldb.Runner, id oidc.Identity) (User, error) {
	if !utf8.ValidString(id.Subject) || strings.ContainsRune(id.Subject, 0) {
		return User{}, notAllowed("sub", codeInvalid, "The claim \"sub\" of the token is not valid text")
	}
	var userID string
	row := db.QueryRowContext(ctx, `SELECT user_id FROM identity_oidc_users WHERE issuer = $1 AND subject = $2`, id.Issuer, id.Subject)
	if err := sqldb.FindInto(row, errNotBound, "reading a provider's user", &userID); err != nil {
		return User{}, err
	}
	user, err := findUserByID(ctx, db, userID)
	if fault.KindOf(err) == fault.KindNotFound {
		return User{ID: userID}, notAllowed("sub", "deleted_user", "The user was deleted: an administrator has to create it again, with the token's \"sub\" as oidc_subject")
	}
	return user, err
}

// roleOf returns the role in the claims; before if no role claim is configured.
func (s *Service) roleOf(id oidc.Identity, before Role) (Role, error) {
	if s.cfg.OIDC.RoleClaim == "" {
		return before, nil
	}
	for _, role := range []Role{RoleAdmin, RoleUser} {
		if slices.Contains(id.Roles, string(role)) {
			return role, nil
		}
	}
	return "", notAllowed(s.cfg.OIDC.RoleClaim, "unknown_role", "The claim \""+s.cfg.OIDC.RoleClaim+"\" of the token has neither admin nor user")
}

func (s *Service) createProviderUser(ctx context.Context, id oidc.Identity, account Account, address string) (User, error) {
	n := NewUser{Username: id.Username, OIDCSubject: id.Subject}
	if id.PresenceID != nil {
		n.PresenceID = *id.PresenceID
	}
	var err error
	if n.Role, err = s.roleOf(id, RoleUser); err != nil {
		return User{}, err
	}
	var bad problems
	bad.text("preferred_username", n.Username, maxName, printable)
	bad.user("", n.PresenceID, n.Role)
	if len(bad) > 0 {
		return User{}, notAllowed(bad[0].Field, "wrong_claim", "The token's claims make no user: "+bad[0].Message)
	}
	user := s.userOf(n)
	hash, err := s.noPassword(ctx)
	if err != nil {
		return User{}, err
	}
	entry := s.audit.Entry(ctx, audit.UserCreate, account.ID, "user:"+user.ID)
	entry.Actor, entry.Address = "user:"+user.ID, address
	var stored bool
	err = s.change(ctx, changeRevocations, func(tx *sql.Tx, rev int64) error {
		found, err := s.findProviderUser(ctx, tx, id)
		if stored = errors.Is(err, errNotBound); !stored { // a concurrent login created it
			user = found
			return err
		}
		user.AccountID = account.ID
		if err := insertUser(ctx, tx, rev, user, hash); err != nil {
			return err
		}
		if err := bindSubject(ctx, tx, id.Issuer, user); err != nil {
			return err
		}
		return s.audit.Insert(ctx, tx, entry)
	})
	if fault.KindOf(err) == fault.KindConflict {
		return User{}, notAllowed("preferred_username", codeTaken, fault.As(err).Message+": an administrator has to change or delete that user")
	}
	if err != nil {
		return User{}, err
	}
	if stored {
		s.audit.Committed(ctx, entry)
	}
	return user, nil
}

// noPassword returns the hash of a random password that is not kept.
func (s *Service) noPassword(ctx context.Context) (hash string, err error) {
	return s.passwords.Hash(ctx, rand.Text())
}

// bindSubject binds user's OIDCSubject to user. Returns fault.KindConflict if the
// subject has another user.
func bindSubject(ctx context.Context, tx *sql.Tx, issuer string, user User) error {
	err := refuseIf(ctx, tx, fault.Conflict("The provider's subject has another user"), "reading a provider's user",
		`SELECT 1 FROM identity_oidc_users o JOIN identity_users u ON u.id = o.user_id WHERE o.issuer = $1 AND o.subject = $2`, issuer, user.OIDCSubject)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO identity_oidc_users (issuer, subject, user_id) VALUES ($1, $2, $3)
		ON CONFLICT (issuer, subject) DO UPDATE SET user_id = excluded.user_id`, issuer, user.OIDCSubject, user.ID)
	return sqldb.Wrap(err, "storing a provider's user")
}

func (s *Service) updateProviderUser(ctx context.Context, user User, id oidc.Identity, address string) (User, error) {
	update := UserUpdate{PresenceID: user.PresenceID}
	if id.PresenceID != nil {
		update.PresenceID = *id.PresenceID
	}
	var err error
	if update.Role, err = s.roleOf(id, user.Role); err != nil {
		return user, err
	}
	if update.Role == user.Role && update.PresenceID == user.PresenceID {
		return user, nil
	}
	updated, err := s.UpdateUser(audit.WithCaller(ctx, audit.Caller{Actor: "user:" + user.ID, Address: address}), user.ID, update)
	switch fault.KindOf(err) {
	case fault.KindConflict, fault.KindInvalid:
		return user, notAllowed(s.cfg.OIDC.PresenceClaim, "wrong_claim", "The token's claims do not fit the user: "+reasonOf(err))
	}
	return updated, err
}

// reasonOf returns the message of an error's first field, else its own.
func reasonOf(err error) string {
	f := fault.As(err)
	if len(f.Fields) > 0 {
		return f.Fields[0].Message
	}
	return f.Message
}
