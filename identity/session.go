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

// sessionOf has the fields that all tokens of a session share: those of the login and of
// its refreshes.
type sessionOf struct {
	family string
	ends   time.Time // no token of the session is valid longer; zero: no bound
}

// newSession issues a pair of tokens of a session.
func (s *Service) newSession(ctx context.Context, db sqldb.Runner, user User, of sessionOf) (*Session, error) {
	accessLife, err := s.lifeUntil(of.ends, s.cfg.AccessTTL)
	if err != nil {
		return nil, err
	}
	refreshLife, err := s.lifeUntil(of.ends, s.cfg.RefreshTTL)
	if err != nil {
		return nil, err
	}
	access, err := s.sign(user, AudienceAPI, accessLife, claims{Family: of.family})
	if err != nil {
		return nil, err
	}
	refresh, now := newSecret(), s.cfg.Now()
	stored, err := sqldb.Exec(ctx, db, `INSERT INTO identity_refresh_tokens
			(hash, family_id, user_id, expires_at, access_expires_at, ends_at)
		SELECT $1, $2, id, CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($7 AS BIGINT) FROM identity_users WHERE id = $5 AND generation = $6`,
		hashSecret(refresh), of.family, now.Add(refreshLife).UnixMilli(),
		now.Add(accessLife).UnixMilli(), user.ID, user.generation, nullTime(of.ends))
	if err != nil {
		return nil, sqldb.Wrap(err, "storing a session")
	}
	if stored == 0 { // the user was deleted, or has a new password, since the password was checked
		return nil, errWrongLogin
	}
	return &Session{User: user, AccessToken: access, RefreshToken: refresh, ExpiresIn: accessLife}, nil
}

// lifeUntil returns the lifetime of a token: ttl, or less if ends is earlier (zero: no
// bound). Returns fault.KindUnauthenticated if ends has passed.
func (s *Service) lifeUntil(ends time.Time, ttl time.Duration) (time.Duration, error) {
	if ends.IsZero() {
		return ttl, nil
	}
	life := min(ttl, ends.Sub(s.cfg.Now()))
	if life < time.Second { // tokens have whole seconds
		return 0, errSessionEnded
	}
	return life, nil
}

var errSessionEnded = fault.Unauthenticated("The session has ended")

// extendFamily stores that a token of the family is valid until expires, so that a
// logout revokes it for as long, and returns the latest end of the session (zero: no
// bound). Returns an error if the family has ended.
func (s *Service) extendFamily(ctx context.Context, family string, expires time.Time) (ends time.Time, err error) {
	err = s.db.WithoutTx(ctx, func(to sqldb.Runner) error {
		var at sql.NullInt64
		row := to.QueryRowContext(ctx, `UPDATE identity_refresh_tokens SET access_expires_at =
			CASE WHEN access_expires_at < $1 THEN $1 ELSE access_expires_at END WHERE family_id = $2 RETURNING ends_at`,
			expires.UnixMilli(), family)
		err := sqldb.FindInto(row, errSessionEnded, "extending a session", &at)
		ends = timeOf(at)
		return err
	})
	return ends, err
}

var errRefresh = fault.Unauthenticated("The refresh token is not valid")

// Refresh exchanges a refresh token for a new pair, once. A second use revokes the whole
// family: the login, every refresh since, and their access tokens.
func (s *Service) Refresh(ctx context.Context, refreshToken string) (*Session, error) {
	hash := hashSecret(refreshToken)
	var session *Session
	var reused *refreshRow
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		session, reused = nil, nil
		row, err := readRefresh(ctx, tx, hash)
		if err != nil {
			return err
		}
		if row.used {
			reused = row
			return nil
		}
		now := s.cfg.Now()
		if row.expires <= now.UnixMilli() {
			return errRefresh
		}
		_, err = tx.ExecContext(ctx, `UPDATE identity_refresh_tokens SET used_at = $1 WHERE hash = $2`,
			now.UnixMilli(), hash)
		if err != nil {
			return sqldb.Wrap(err, "using a refresh token")
		}
		session, err = s.newSession(ctx, tx, row.user, row.sessionOf)
		return err
	})
	if err != nil {
		return nil, err
	}
	if reused == nil {
		return session, nil
	}
	if err := s.endReused(ctx, reused); err != nil {
		return nil, err
	}
	return nil, errRefresh
}

type refreshRow struct {
	sessionOf
	expires int64 // Unix milliseconds
	used    bool
	user    User
}

func readRefresh(ctx context.Context, tx *sql.Tx, hash string) (*refreshRow, error) {
	found := tx.QueryRowContext(ctx, `SELECT r.family_id, r.expires_at, r.used_at IS NOT NULL, r.ends_at, `+userColumns+`
		FROM identity_refresh_tokens r JOIN identity_users u ON u.id = r.user_id WHERE r.hash = $1`, hash)
	return sqldb.Find(found, errRefresh, "reading a refresh token", func(scan sqldb.ScanFunc) (row *refreshRow, err error) {
		row = &refreshRow{}
		var ends sql.NullInt64
		row.user, err = scanUser(scan, &row.family, &row.expires, &row.used, &ends)
		row.ends = timeOf(ends)
		return row, err
	})
}

// endReused revokes the family of a token that was used twice: one of the two users has
// stolen it.
func (s *Service) endReused(ctx context.Context, row *refreshRow) error {
	s.metrics.reuses.Inc()
	err := s.change(ctx, changeRevocations, func(tx *sql.Tx, rev int64) error {
		return revokeFamily(ctx, tx, rev, row.family, s.cfg.Now())
	})
	if err != nil {
		return err
	}
	s.log.WarnContext(ctx, "refresh token reused, session revoked",
		slog.String("user_id", row.user.ID), slog.String("account_id", row.user.AccountID))
	return nil
}

// Logout revokes the principal's token, and its family if it has one.
func (s *Service) Logout(ctx context.Context, p *Principal) error {
	if p.IsKey() {
		return fault.Forbidden("An API key has no session to end")
	}
	entry := s.audit.Entry(ctx, audit.Logout, p.AccountID, string(p.Audience))
	entry.Actor = p.Actor()
	return s.auditedChange(ctx, changeRevocations, &entry, func(tx *sql.Tx, rev int64) error {
		end := revoke
		id := p.TokenID
		if p.FamilyID != "" {
			end, id = revokeFamily, p.FamilyID
		}
		return end(ctx, tx, rev, id, p.ExpiresAt)
	})
}

// endUser revokes every token of a user who is being deleted. The refresh
// tokens go with the user's row.
func endUser(ctx context.Context, tx *sql.Tx, rev int64, userID string, now time.Time) error {
	return revoke(ctx, tx, rev, userID, now.Add(maxTokenTTL))
}
