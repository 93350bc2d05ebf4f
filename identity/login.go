package identity

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Login returns the portal login: it begins a session of tokens for the api
// audience. A wrong user, domain or password take the same time and answer the
// same; after too many of them logins are refused as limited.
func (s *Service) Login(ctx context.Context, c Credentials) (*Session, error) {
	session, err := s.openSession(ctx, c)
	s.countLogin(AudienceAPI, err)
	return session, err
}

func (s *Service) openSession(ctx context.Context, c Credentials) (*Session, error) {
	user, err := s.check(ctx, c)
	if err != nil {
		return nil, err
	}
	s.haveDevice(ctx, user, c.Password)
	return s.newSession(ctx, s.db, user, newID())
}

var errWrongLogin = fault.Unauthenticated("Wrong username, password or domain")

// check finds the user whose credentials these are.
func (s *Service) check(ctx context.Context, c Credentials) (User, error) {
	if err := c.validate(); err != nil {
		return User{}, err
	}
	limits := c.limits()
	if err := limited(s.limiter.Wait(ctx, limits...)); err != nil {
		return User{}, err // without queueing for a hash
	}
	user, stored, err := s.findLogin(ctx, c)
	if err != nil {
		return User{}, err
	}
	right, err := s.checkPassword(ctx, limits, stored, c.Password)
	if err != nil {
		return User{}, err
	}
	if !right || user.ID == "" {
		if err := limited(s.limiter.Fail(ctx, limits...)); err != nil {
			return User{}, err
		}
		return User{}, errWrongLogin
	}
	return user, nil
}

// checkPassword waits its turn and asks again whether it may guess: those that
// waited before it may have used the limit up.
func (s *Service) checkPassword(ctx context.Context, limits []Limit, stored, password string) (bool, error) {
	done, err := s.passwords.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if err := limited(s.limiter.Wait(ctx, limits...)); err != nil {
		return false, err
	}
	right, err := matches(stored, password)
	if err != nil {
		return false, fault.Internal(err, "The password could not be checked")
	}
	return right, nil
}

func limited(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	seconds := (wait + time.Second - 1).Truncate(time.Second)
	return fault.Limited(seconds, "Too many failed logins")
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

// findLogin returns the decoy's hash, and no user, when there is no such user.
func (s *Service) findLogin(ctx context.Context, c Credentials) (user User, stored string, err error) {
	domain, username := strings.ToLower(c.Domain), strings.ToLower(c.Username)
	if !storable(domain) || !storable(username) {
		return User{}, s.passwords.decoy, nil
	}
	row := s.db.QueryRowContext(ctx, `SELECT u.password, `+userColumns+` FROM identity_users u
		JOIN identity_accounts a ON a.id = u.account_id
		WHERE a.domain = $1 AND u.username_key = $2`, domain, username)
	user, err = scanUser(func(columns ...any) error { return row.Scan(append([]any{&stored}, columns...)...) })
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, s.passwords.decoy, nil
	}
	return user, stored, sqldb.Wrap(err, "reading a user")
}

// maxFilterAccounts bounds a channel token's length.
const maxFilterAccounts = 200

// EventsLogin returns the channel login: a token for the events audience, that
// carries the filters. Empty filters are none. An account that the user may not
// see and one that does not exist look the same.
func (s *Service) EventsLogin(ctx context.Context, c Credentials, accountIDs, eventTypes []string) (
	token string, expiresIn time.Duration, err error) {
	token, err = s.channelToken(ctx, c, accountIDs, eventTypes)
	s.countLogin(AudienceEvents, err)
	return token, s.cfg.EventsTTL, err
}

func (s *Service) channelToken(ctx context.Context, c Credentials, accountIDs, eventTypes []string) (string, error) {
	user, err := s.check(ctx, c)
	if err != nil {
		return "", err
	}
	filter := claims{AccountIDs: unique(accountIDs), EventTypes: unique(eventTypes)}
	if len(filter.AccountIDs) > maxFilterAccounts {
		return "", fault.InvalidField("account_ids", codeTooMany, "at most 200 accounts can be named")
	}
	if !s.seesAll(user.AccountID, filter.AccountIDs) {
		s.catchUp(ctx) // another node may just have made one
	}
	if err := s.checkFilters(user, accountIDs, eventTypes); err != nil {
		return "", err
	}
	return s.sign(user, AudienceEvents, s.cfg.EventsTTL, filter)
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
