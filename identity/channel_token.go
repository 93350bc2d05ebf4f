package identity

import (
	"context"
	"errors"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
)

// EventsExchange issues a channel token for the principal of a portal token, or of an API
// key with ScopeSubscribe, at the address. The channel token ends when the portal token's
// session ends, or when the key expires or is deleted.
func (t *Tokens) EventsExchange(ctx context.Context, p *Principal, address string,
	f Filter) (token string, expiresIn time.Duration, err error) {
	defer func() { t.metrics.countLogin(AudienceEvents, err) }()
	if p.IsKey() {
		return t.exchangeAPIKey(ctx, p, f)
	}
	return t.exchangePortalToken(ctx, p, address, f)
}

func (t *Tokens) exchangeAPIKey(ctx context.Context, p *Principal,
	f Filter) (token string, lifetime time.Duration, err error) {
	if err := p.RequireScope(ScopeSubscribe); err != nil {
		return "", 0, err
	}
	if err := t.CheckPrincipal(p); err != nil {
		return "", 0, fault.Unauthenticated("The API key is not valid")
	}
	if err := checkChannelRole(p.Role); err != nil {
		return "", 0, err
	}

	// claims.check admits no other role in a key's token. What the token sees depends on the key (VisibilityOf).
	subject := User{ID: p.KeyID, AccountID: p.AccountID, Role: RoleUser}
	if err := limitTokens(ctx, t.limiter, kindKeyExchange, p.KeyID, t.cfg.KeyTokensPerMinute); err != nil {
		return "", 0, err
	}

	extra, err := t.checkedFilterClaims(ctx, subject, f)
	if err != nil {
		return "", 0, err
	}

	extra.Key = p.KeyID
	token, lifetime, err = t.issueChannelToken(ctx, subject, extra,
		t.directory.snapshot.Load().keysByID[p.KeyID].ExpiresAt,
		t.audit.Entry(ctx, audit.Login, p.AccountID, string(AudienceEvents)))
	if errors.Is(err, errSessionEnded) {
		err = fault.Unauthenticated("The API key has expired")
	}

	return token, lifetime, err
}

func (t *Tokens) exchangePortalToken(ctx context.Context, p *Principal, address string,
	f Filter) (token string, lifetime time.Duration, err error) {
	if p.Audience != AudienceAPI || p.FamilyID == "" {
		return "", 0, fault.Forbidden("A channel token is issued for a portal token")
	}

	user, err := t.directory.FindUser(ctx, p.UserID)
	if fault.KindOf(err) == fault.KindNotFound {
		return "", 0, errSessionEnded
	}
	if err != nil {
		return "", 0, err
	}

	extra, err := t.channelClaims(ctx, user, f)
	if err != nil {
		return "", 0, err
	}

	extra.Family = p.FamilyID
	// Before the token is issued: a revocation of the session must last as long as the token.
	sessionEnd, err := t.extendFamily(ctx, p.FamilyID, t.cfg.Now().Add(t.cfg.EventsTTL))
	if err != nil {
		return "", 0, err
	}

	return t.issueChannelToken(ctx, user, extra, sessionEnd,
		loginEntry(ctx, t.audit, audit.Login, AudienceEvents, address, user))
}

// issueChannelToken writes entry to the audit log and returns a channel token that
// expires at latestEnd (zero: no bound) at the latest.
func (t *Tokens) issueChannelToken(ctx context.Context, user User, extra claims, latestEnd time.Time,
	entry audit.Entry) (token string, lifetime time.Duration, err error) {
	lifetime, err = cappedLifetime(t.cfg.Now(), latestEnd, t.cfg.EventsTTL)
	if err != nil {
		return "", 0, err
	}
	if err := t.audit.Record(ctx, entry); err != nil {
		return "", 0, err
	}
	token, err = t.sign(user, AudienceEvents, lifetime, extra)
	return token, lifetime, err
}

// checkChannelRole returns fault.KindForbidden for a role that sees no events.
func checkChannelRole(role Role) error {
	if role == RoleAuditor {
		return fault.Forbidden("An auditor sees no events")
	}
	return nil
}

// channelClaims counts a channel login of a user and returns the claims with its filter.
// Returns fault.KindLimited above UserTokensPerMinute.
func (t *Tokens) channelClaims(ctx context.Context, user User, f Filter) (claims, error) {
	if err := checkChannelRole(user.Role); err != nil {
		return claims{}, err
	}
	if err := limitTokens(ctx, t.limiter, kindChannel, user.ID, t.cfg.UserTokensPerMinute); err != nil {
		return claims{}, err
	}
	return t.checkedFilterClaims(ctx, user, f)
}

// checkedFilterClaims validates the filter of a channel login of the subject and returns the
// claims that have it.
func (t *Tokens) checkedFilterClaims(ctx context.Context, subject User, f Filter) (claims, error) {
	distinct, err := t.directory.CheckFilter(ctx, subject.AccountID, f)
	if err != nil {
		return claims{}, err
	}
	c, err := t.filterClaims(ctx, subject, distinct)
	c.affinity = affinityHeader(ctx, t.cfg.PartitionOf, subject.AccountID, distinct)
	return c, err
}

// Header parameters of a channel token that balancers hash, so that subscribers of the
// same events are connected to the same node. Nothing else reads them, and a token
// without them is valid. They are in the header because it, unlike the claims, is the
// same in all tokens of an account and a signing key: a balancer that cannot decode
// base64url hashes the token up to its first dot.
const (
	headerAccount   = "account"   // account of the events that the token selects
	headerPartition = "partition" // partition of the account's new events; a number
)

// partitionTimeout bounds the query of the partition during a login.
const partitionTimeout = 200 * time.Millisecond

// AccountOfEvents returns the account of the events that the principal's channel token
// selects: the only account of its filter, else the principal's own.
func (p *Principal) AccountOfEvents() string { return selectedAccount(p.AccountID, p.Filter) }

func selectedAccount(ownAccount string, f Filter) string {
	if len(f.AccountIDs) == 1 {
		return f.AccountIDs[0]
	}
	return ownAccount
}

// affinityHeader returns the header parameters of a channel token for a user or key of
// ownAccount. It omits the partition if Kafka does not return it within
// partitionTimeout.
func affinityHeader(ctx context.Context, partitionOf PartitionFunc, ownAccount string, f Filter) map[string]any {
	account := selectedAccount(ownAccount, f)
	header := map[string]any{headerAccount: account}
	if partitionOf != nil {
		ctx, cancel := context.WithTimeout(ctx, partitionTimeout)
		defer cancel()
		partition, err := partitionOf(ctx, account)
		if err == nil {
			header[headerPartition] = partition
		}
	}

	return header
}
