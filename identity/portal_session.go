package identity

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// sessionFields has the fields that all tokens of a session share: those of the login and
// of its refreshes.
type sessionFields struct {
	family    string
	secret    string    // the first half of each of its refresh tokens, see splitRefreshToken
	latestEnd time.Time // expiry of all tokens of the session at the latest; zero for no bound
}

// A refresh token is a secret of its session and one of its own. A session is one row, with
// the hashes of both: a token that has the session's secret and is not the current one was
// used before, however often the session has been refreshed since.
func splitRefreshToken(token string) (session string) {
	if len(token) != 2*secretLength {
		return "" // of an earlier version
	}
	return token[:secretLength]
}

// storedTokens is what a session's row stores of its newest tokens.
type storedTokens struct {
	hash, secretHash           string
	expiresAt, accessExpiresAt int64 // Unix milliseconds
}

// issuePair issues an access token and a refresh token of a session, and calls store, which
// returns the number of rows in which it stored them.
func (t *Tokens) issuePair(user User, fields sessionFields,
	store func(storedTokens) (stored int, err error)) (*Session, error) {
	now := t.cfg.Now()
	accessLifetime, err := cappedLifetime(now, fields.latestEnd, t.cfg.AccessTTL)
	if err != nil {
		return nil, err
	}

	refreshLifetime, err := cappedLifetime(now, fields.latestEnd, t.cfg.RefreshTTL)
	if err != nil {
		return nil, err
	}

	access, err := t.sign(user, AudienceAPI, accessLifetime, claims{Family: fields.family})
	if err != nil {
		return nil, err
	}

	refresh := fields.secret + newSecret()
	stored, err := store(storedTokens{
		hash: hashSecret(refresh), secretHash: hashSecret(fields.secret),
		expiresAt: now.Add(refreshLifetime).UnixMilli(), accessExpiresAt: now.Add(accessLifetime).UnixMilli(),
	})
	if err != nil {
		return nil, sqldb.Wrap(err, "storing a session")
	}

	if stored == 0 { // the user was deleted, or has a new password, since the password was checked
		return nil, errWrongLogin
	}

	return &Session{User: user, AccessToken: access, RefreshToken: refresh, ExpiresIn: accessLifetime}, nil
}

// beginSession creates a session that ends at latestEnd (zero: no bound) at the latest.
// It fails if the login cannot be written to the audit log.
func (t *Tokens) beginSession(ctx context.Context, user User, address string, latestEnd time.Time) (*Session, error) {
	if err := limitTokens(ctx, t.limiter, kindLogin, user.ID, t.cfg.UserTokensPerMinute); err != nil {
		return nil, err
	}

	session, err := t.newSession(ctx, user, latestEnd)
	if err != nil {
		return nil, err
	}

	if err := t.audit.Record(ctx, loginEntry(ctx, t.audit, audit.Login, AudienceAPI, address, user)); err != nil {
		return nil, err
	}

	return session, nil
}

// newSession creates a session that ends at latestEnd (zero: no bound) at the latest, and
// ends the user's oldest ones above SessionsPerUser.
func (t *Tokens) newSession(ctx context.Context, user User, latestEnd time.Time) (*Session, error) {
	fields := sessionFields{family: sqldb.NewID(), secret: newSecret(), latestEnd: latestEnd}
	session, err := t.issuePair(user, fields, func(pair storedTokens) (int, error) {
		return sqldb.Exec(ctx, t.db, `INSERT INTO identity_refresh_tokens
				(hash, family_hash, family_id, user_id, expires_at, access_expires_at, ends_at)
			SELECT $1, $8, $2, id, CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($7 AS BIGINT) FROM identity_users WHERE id = $5 AND generation = $6`,
			pair.hash, fields.family, pair.expiresAt, pair.accessExpiresAt, user.ID, user.passwordGeneration,
			nullTime(latestEnd), pair.secretHash)
	})
	if err != nil {
		return nil, err
	}

	return session, t.endOldSessions(ctx, user.ID)
}

// maxEndedSessions is the number of old sessions that one login ends.
const maxEndedSessions = 100

// endOldSessions ends the sessions of a user above SessionsPerUser, those first that were
// not refreshed for longest.
func (t *Tokens) endOldSessions(ctx context.Context, userID string) error {
	rows, err := t.db.QueryContext(ctx, `SELECT family_id FROM identity_refresh_tokens WHERE user_id = $1
		GROUP BY family_id ORDER BY MAX(expires_at) DESC, family_id DESC LIMIT $2 OFFSET $3`, userID, maxEndedSessions,
		t.cfg.SessionsPerUser)
	old, err := sqldb.Collect(rows, err, "reading a user's sessions",
		func(scan sqldb.ScanFunc) (family string, err error) {
			err = scan(&family)
			return family, err
		})
	if err != nil || len(old) == 0 {
		return err
	}

	return t.directory.changes.tx(ctx, changeRevocations, func(tx *sql.Tx, rev int64) error {
		for _, family := range old {
			if err := revokeFamily(ctx, tx, rev, family, t.cfg.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// cappedLifetime returns the lifetime of a token that is issued now: ttl, or the time until latestEnd (zero:
// no bound) if that is shorter. Returns fault.KindUnauthenticated if latestEnd has passed.
func cappedLifetime(now, latestEnd time.Time, ttl time.Duration) (time.Duration, error) {
	if latestEnd.IsZero() {
		return ttl, nil
	}
	lifetime := min(ttl, latestEnd.Sub(now))
	if lifetime < time.Second { // tokens have whole seconds
		return 0, errSessionEnded
	}
	return lifetime, nil
}

var errSessionEnded = fault.Unauthenticated("The session has ended")

// extendFamily stores that a token of the family is valid until expires, so that a
// revocation of the family lasts as long. It returns the latest end of the session (zero:
// no bound). Returns fault.KindUnauthenticated if the family has ended.
func (t *Tokens) extendFamily(ctx context.Context, family string, expires time.Time) (latestEnd time.Time, err error) {
	err = t.db.WithoutTx(ctx, func(to sqldb.Runner) error {
		var at sql.NullInt64
		row := to.QueryRowContext(ctx, `UPDATE identity_refresh_tokens SET access_expires_at =
			CASE WHEN access_expires_at < $1 THEN $1 ELSE access_expires_at END WHERE family_id = $2 RETURNING ends_at`,
			expires.UnixMilli(), family)
		err := sqldb.FindInto(row, errSessionEnded, "extending a session", &at)
		latestEnd = timeFromNull(at)

		return err
	})

	return latestEnd, err
}

var errInvalidRefreshToken = fault.Unauthenticated("The refresh token is not valid")

// Refresh exchanges a refresh token for a new pair, once. A second use revokes the whole
// family: the login, every refresh since, and their access tokens. Returns
// fault.KindLimited if the user's sessions were refreshed too often.
func (t *Tokens) Refresh(ctx context.Context, refreshToken string) (*Session, error) {
	row, err := findRefreshToken(ctx, t.db, refreshToken)
	if err != nil {
		return nil, err
	}

	// Not in the transaction, which may run several times.
	if err := limitTokens(ctx, t.limiter, kindRefresh, row.user.ID, t.cfg.UserTokensPerMinute); err != nil {
		return nil, err
	}

	var session *Session
	var reused *refreshRow
	err = t.db.Tx(ctx, func(tx *sql.Tx) error {
		session, reused = nil, nil
		row, err := findRefreshToken(ctx, tx, refreshToken)
		if err != nil {
			return err
		}

		if row.used {
			// Revoked after this transaction, in one that increments the revision (changes.tx).
			reused = row
			return nil
		}
		if row.expires <= t.cfg.Now().UnixMilli() {
			return errInvalidRefreshToken
		}
		if row.secret == "" {
			row.secret = newSecret() // a session of an earlier version
		}

		session, err = t.issuePair(row.user, row.sessionFields, func(pair storedTokens) (int, error) {
			return sqldb.Exec(ctx, tx, `UPDATE identity_refresh_tokens SET hash = $1, family_hash = $2, expires_at = $3,
				access_expires_at = CASE WHEN access_expires_at < $4 THEN $4 ELSE access_expires_at END WHERE hash = $5 AND used_at IS NULL`,
				pair.hash, pair.secretHash, pair.expiresAt, pair.accessExpiresAt, hashSecret(refreshToken))
		})

		return err
	})
	if err != nil {
		return nil, err
	}

	if reused == nil {
		return session, nil
	}
	if err := t.revokeReused(ctx, reused); err != nil {
		return nil, err
	}

	return nil, errInvalidRefreshToken
}

type refreshRow struct {
	sessionFields
	expires int64 // Unix milliseconds
	used    bool
	user    User
}

// findRefreshToken returns the row of a refresh token's session. Returns
// errInvalidRefreshToken if there is none.
func findRefreshToken(ctx context.Context, db sqldb.Runner, token string) (*refreshRow, error) {
	secret := splitRefreshToken(token)
	found := db.QueryRowContext(ctx,
		`SELECT r.family_id, r.expires_at, r.used_at IS NOT NULL OR r.hash <> $1, r.ends_at, `+userColumns+`
		FROM identity_refresh_tokens r JOIN identity_users u ON u.id = r.user_id
		WHERE r.hash = $1 OR r.family_hash = $2 ORDER BY r.hash = $1 DESC LIMIT 1`, hashSecret(token),
		hashSecret(secret))

	return sqldb.Find(found, errInvalidRefreshToken, "reading a refresh token",
		func(scan sqldb.ScanFunc) (row *refreshRow, err error) {
			row = &refreshRow{sessionFields: sessionFields{secret: secret}}
			var ends sql.NullInt64
			row.user, err = scanUser(scan, &row.family, &row.expires, &row.used, &ends)
			row.latestEnd = timeFromNull(ends)
			return row, err
		})
}

// revokeReused revokes the family of a refresh token that was used twice, because one of
// the two clients has stolen it.
func (t *Tokens) revokeReused(ctx context.Context, row *refreshRow) error {
	t.metrics.reuses.Inc()
	err := t.directory.changes.tx(ctx, changeRevocations, func(tx *sql.Tx, rev int64) error {
		return revokeFamily(ctx, tx, rev, row.family, t.cfg.Now())
	})
	if err != nil {
		return err
	}

	t.log.WarnContext(ctx, "refresh token reused, session revoked",
		slog.String("user_id", row.user.ID), slog.String("account_id", row.user.AccountID))
	return nil
}

// Logout revokes the principal's token, and its family if it has one.
func (t *Tokens) Logout(ctx context.Context, p *Principal) error {
	if p.IsKey() {
		return fault.Forbidden("An API key has no session to end")
	}

	entry := t.audit.Entry(ctx, audit.Logout, p.AccountID, string(p.Audience))
	entry.Actor = p.Actor()
	return t.directory.changes.auditedTx(ctx, changeRevocations, &entry, func(tx *sql.Tx, rev int64) error {
		revokeAll := revoke
		id := p.TokenID
		if p.FamilyID != "" {
			revokeAll, id = revokeFamily, p.FamilyID
		}
		return revokeAll(ctx, tx, rev, id, p.ExpiresAt)
	})
}

// EventsLogout revokes the principal's channel token, and nothing that it was made from.
func (t *Tokens) EventsLogout(ctx context.Context, p *Principal) error {
	entry := t.audit.Entry(ctx, audit.Logout, p.AccountID, string(p.Audience))
	entry.Actor = p.Actor()
	return t.directory.changes.auditedTx(ctx, changeRevocations, &entry, func(tx *sql.Tx, rev int64) error {
		return revoke(ctx, tx, rev, p.TokenID, p.ExpiresAt)
	})
}
