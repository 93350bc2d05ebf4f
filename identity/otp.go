package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"database/sql"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

const (
	otpPeriod         = 30 * time.Second
	otpSkew           = 1 // periods before and after the current one whose codes are accepted
	otpSecretBytes    = 20
	enrolTimeout      = 15 * time.Minute // from BeginOTP to ConfirmOTP
	recoveryCodeCount = 10
	recoveryCodeBytes = 10 // 80 bits, 16 characters
)

var (
	errOTPRequired = fault.NewField(fault.KindUnauthenticated, "otp", codeRequired, "A one-time password is required")
	errOTPWrong    = fault.NewField(fault.KindUnauthenticated, "otp", "wrong", "Wrong one-time password")
	errOTPEnrol    = fault.NewField(fault.KindForbidden, "otp", "enrolment_required",
		"The account requires administrators to set up one-time passwords")
)

// otpSecret is a row of identity_otp.
type otpSecret struct{ id, sealed string }

// checkOTP checks the one-time password of a user whose password was correct. A user
// without a secret needs none, unless the account requires its administrators to have
// one. A wrong code counts as a failed login.
func (c *Credentials) checkOTP(ctx context.Context, r LoginRequest, user User) error {
	var required int
	var id, sealed sql.NullString
	row := c.db.QueryRowContext(ctx, `SELECT a.admin_otp, o.id, o.secret FROM identity_accounts a
		LEFT JOIN identity_otp o ON o.user_id = $1 AND o.confirmed = 1 WHERE a.id = $2`, user.ID, user.AccountID)
	accountDeleted := errWrongLogin // since the user was read
	if err := sqldb.FindInto(row, accountDeleted, "reading a one-time password", &required, &id, &sealed); err != nil {
		return err
	}

	switch {
	case !id.Valid && required == 1 && user.Role == RoleAdmin:
		return errOTPEnrol
	case !id.Valid:
		return nil
	case r.OTP == "":
		return errOTPRequired
	}

	used, err := c.consumeCode(ctx, user.ID, otpSecret{id: id.String, sealed: sealed.String}, r.OTP)
	if err != nil || used {
		return err
	}

	if err := c.limits.countFailure(ctx, r.attempt()); err != nil {
		return err
	}

	return errOTPWrong
}

// matchesOTP reports whether code is a one-time password of the user's now. It does not
// invalidate it.
func (c *Credentials) matchesOTP(ctx context.Context, userID, code string) (bool, error) {
	var secret otpSecret
	row := c.db.QueryRowContext(ctx, `SELECT id, secret FROM identity_otp WHERE user_id = $1 AND confirmed = 1`, userID)
	err := sqldb.FindInto(row, sql.ErrNoRows, "reading a one-time password", &secret.id, &secret.sealed)
	if err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return false, err
	}

	step, err := c.matchStep(secret, normalizeCode(code))
	return step > 0, err
}

// normalizeCode returns a code without the spaces and hyphens that people type.
func normalizeCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
}

// consumeCode reports whether code is a valid one-time password of the secret or recovery
// code of the user, and invalidates it.
func (c *Credentials) consumeCode(ctx context.Context, userID string, secret otpSecret,
	code string) (used bool, err error) {
	code = normalizeCode(code)
	if len(code) != otp.DigitsSix.Length() {
		return changesRow(ctx, c.db, `DELETE FROM identity_recovery_codes WHERE hash = $1 AND user_id = $2`,
			hashSecret(code), userID)
	}

	step, err := c.matchStep(secret, code)
	if err != nil || step == 0 {
		return false, err
	}

	// A code counts once, also of concurrent logins: only one of them changes the row.
	return changesRow(ctx, c.db, `UPDATE identity_otp SET last_step = $1 WHERE id = $2 AND last_step < $1`, step,
		secret.id)
}

// changesRow executes a statement and reports whether it changed a row.
func changesRow(ctx context.Context, db *sqldb.DB, statement string, args ...any) (changed bool, err error) {
	rows, err := db.ExecWithoutTx(ctx, statement, args...)
	return rows > 0, sqldb.Wrap(err, "using a one-time password")
}

// matchStep returns the time step (RFC 6238) whose one-time password is code, 0 if there
// is none within otpSkew of the current one.
func (c *Credentials) matchStep(secret otpSecret, code string) (step int64, err error) {
	raw, err := c.keyring.Unseal(secret.sealed, otpTable, secret.id)
	if err != nil {
		return 0, err
	}

	now := c.cfg.Now()
	for i := -otpSkew; i <= otpSkew; i++ {
		stepTime := now.Add(time.Duration(i) * otpPeriod)
		want, err := totp.GenerateCodeCustom(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw),
			stepTime,
			totp.ValidateOpts{Period: uint(otpPeriod / time.Second), Digits: otp.DigitsSix,
				Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, fault.Internal(err, "The one-time password could not be checked")
		}

		if subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			step = stepTime.Unix() / int64(otpPeriod/time.Second)
		}
	}

	return step, nil
}

// OTPEnrolment is the data for an authenticator app. The user sees it only once.
type OTPEnrolment struct {
	Secret string // base32
	URI    string // otpauth://totp/…
}

// BeginOTP creates a secret for the user of the credentials, to be confirmed with
// ConfirmOTP. A user who already has one-time passwords must give one, or a recovery
// code.
func (c *Credentials) BeginOTP(ctx context.Context, r LoginRequest) (OTPEnrolment, error) {
	user, err := c.checkCredentials(ctx, r)
	if err == nil {
		err = c.checkOTP(ctx, r, user)
		if errors.Is(err, errOTPEnrol) {
			err = nil
		}
	}
	if err != nil {
		c.auditRefusedLogin(ctx, AudienceAPI, r, user, err)
		c.auditRefusedEnrolment(ctx, r, user, err)
		return OTPEnrolment{}, err
	}

	if err := limitTokens(ctx, c.limits.limiter, kindLogin, user.ID, c.cfg.UserTokensPerMinute); err != nil {
		return OTPEnrolment{}, err
	}

	var enrolment OTPEnrolment
	entry := c.enrolmentEntry(ctx, r, user, "begun")
	err = audit.Tx(ctx, c.audit, c.db.Tx, &entry, func(tx *sql.Tx) (err error) {
		enrolment, err = c.insertOTP(ctx, tx, user, r.Domain, 0)
		return err
	})

	return enrolment, err
}

// enrolmentEntry returns the audit entry of a step of an enrolment with credentials.
func (c *Credentials) enrolmentEntry(ctx context.Context, r LoginRequest, user User, outcome string) audit.Entry {
	e := loginEntry(ctx, c.audit, audit.OTPEnrol, AudienceAPI, r.Address, user)
	e.Target, e.Outcome = "user:"+user.ID, outcome
	return e
}

// auditRefusedEnrolment writes a step of an enrolment that was refused to somebody with the
// user's password.
func (c *Credentials) auditRefusedEnrolment(ctx context.Context, r LoginRequest, user User, err error) {
	switch {
	case errors.Is(err, errOTPRequired), errors.Is(err, errOTPWrong), errors.Is(err, errNoEnrolment):
		c.audit.Report(ctx, c.enrolmentEntry(ctx, r, user, "refused"))
	}
}

// insertOTP replaces the user's confirmed (1) or unconfirmed (0) secret. Either ends all
// enrolments that were begun before, with which somebody else could replace the secret.
func (c *Credentials) insertOTP(ctx context.Context, tx *sql.Tx, user User, domain string,
	confirmed int) (OTPEnrolment, error) {
	raw := make([]byte, otpSecretBytes)
	rand.Read(raw) // never fails
	key, err := totp.Generate(
		totp.GenerateOpts{Issuer: "Trunkline", AccountName: user.Username + "@" + domain, Secret: raw})
	if err != nil {
		return OTPEnrolment{}, fault.Internal(err, "The one-time password could not be set up")
	}

	id := sqldb.NewID()
	sealed, err := c.keyring.Seal(raw, otpTable, id)
	if err != nil {
		return OTPEnrolment{}, err
	}

	_, err = tx.ExecContext(ctx, `DELETE FROM identity_otp WHERE user_id = $1 AND confirmed <= $2`, user.ID, confirmed)
	if err != nil {
		return OTPEnrolment{}, sqldb.Wrap(err, "deleting a one-time password's secret")
	}

	_, err = tx.ExecContext(ctx,
		`INSERT INTO identity_otp (id, user_id, secret, master_key_id, confirmed, last_step, created_at, replaces)
		VALUES ($2, $1, $3, $4, $5, 0, $6, `+confirmedOTPQuery+`)`, user.ID, id, sealed, masterkey.KeyID(sealed), confirmed,
		c.cfg.storedNow().UnixMilli())

	return OTPEnrolment{Secret: key.Secret(), URI: key.URL()}, sqldb.Wrap(err, "storing a one-time password's secret")
}

// ConfirmOTP completes an enrolment with a one-time password of the new secret. Later
// logins require one. It returns recovery codes, which replace earlier ones.
func (c *Credentials) ConfirmOTP(ctx context.Context, r LoginRequest) (codes []string, err error) {
	user, err := c.checkCredentials(ctx, r)
	if err != nil {
		c.auditRefusedLogin(ctx, AudienceAPI, r, user, err)
		return nil, err
	}

	secret, step, err := c.matchEnrolment(ctx, r, user)
	if err != nil {
		c.auditRefusedEnrolment(ctx, r, user, err)
		return nil, err
	}

	return c.storeOTP(ctx, c.enrolmentEntry(ctx, r, user, "confirmed"), user, func(tx *sql.Tx) error {
		var current string
		row := tx.QueryRowContext(ctx,
			`SELECT id FROM identity_otp WHERE id = $2 AND user_id = $1 AND confirmed = 0 AND replaces = `+confirmedOTPQuery,
			user.ID, secret.id)
		if err := sqldb.FindInto(row, errNoEnrolment, "reading a one-time password's secret", &current); err != nil {
			return err
		}

		// A user has one confirmed secret at most, by the table's UNIQUE (user_id, confirmed).
		_, err := tx.ExecContext(ctx, `DELETE FROM identity_otp WHERE user_id = $1 AND confirmed = 1`, user.ID)
		if err != nil {
			return sqldb.Wrap(err, "deleting a one-time password's secret")
		}

		_, err = tx.ExecContext(ctx, `UPDATE identity_otp SET confirmed = 1, last_step = $1 WHERE id = $2`, step,
			secret.id)
		return sqldb.Wrap(err, "confirming a one-time password's secret")
	})
}

// confirmedOTPQuery is the id of the confirmed secret of the user $1, empty if there is none. A secret
// is confirmed only in place of the one whose code began its enrolment.
const confirmedOTPQuery = `COALESCE((SELECT c.id FROM identity_otp c WHERE c.user_id = $1 AND c.confirmed = 1), '')`

var errNoEnrolment = fault.Conflict("There is no enrolment to confirm")

// matchEnrolment returns the user's unconfirmed secret and the time step of the code of it
// in r. A wrong code counts as a failed login.
func (c *Credentials) matchEnrolment(ctx context.Context, r LoginRequest,
	user User) (secret otpSecret, step int64, err error) {
	if r.OTP == "" {
		return secret, 0, errOTPRequired
	}

	row := c.db.QueryRowContext(ctx, `SELECT id, secret FROM identity_otp
		WHERE user_id = $1 AND confirmed = 0 AND created_at >= $2 AND replaces = `+confirmedOTPQuery,
		user.ID, c.cfg.Now().Add(-enrolTimeout).UnixMilli())
	err = sqldb.FindInto(row, errNoEnrolment, "reading a one-time password's secret", &secret.id, &secret.sealed)
	if err != nil {
		return secret, 0, err
	}

	step, err = c.matchStep(secret, normalizeCode(r.OTP))
	if err != nil || step > 0 {
		return secret, step, err
	}

	if err := c.limits.countFailure(ctx, r.attempt()); err != nil {
		return secret, 0, err
	}

	c.auditRefusedLogin(ctx, AudienceAPI, r, user, errOTPWrong)
	return secret, 0, errOTPWrong
}

// EnrolOTP creates a secret for a user that needs no confirmation.
func (c *Credentials) EnrolOTP(ctx context.Context,
	accountRef, username string) (enrolment OTPEnrolment, codes []string, err error) {
	account, user, err := resolveUser(ctx, c.db, accountRef, username)
	if err != nil {
		return OTPEnrolment{}, nil, err
	}

	entry := c.audit.Entry(ctx, audit.OTPEnrol, user.AccountID, "user:"+user.ID)
	entry.Outcome = "confirmed"
	codes, err = c.storeOTP(ctx, entry, user, func(tx *sql.Tx) (err error) {
		enrolment, err = c.insertOTP(ctx, tx, user, account.Domain, 1)
		return err
	})

	return enrolment, codes, err
}

// storeOTP calls store for a confirmed secret and stores new recovery codes, in one
// transaction with the audit entry.
func (c *Credentials) storeOTP(ctx context.Context, entry audit.Entry, user User,
	store func(tx *sql.Tx) error) (codes []string, err error) {
	err = audit.Tx(ctx, c.audit, c.db.Tx, &entry, func(tx *sql.Tx) error {
		if err := store(tx); err != nil {
			return err
		}
		codes, err = insertRecoveryCodes(ctx, tx, user.ID)
		return err
	})
	return codes, err
}

func insertRecoveryCodes(ctx context.Context, tx *sql.Tx, userID string) (codes []string, err error) {
	_, err = tx.ExecContext(ctx, `DELETE FROM identity_recovery_codes WHERE user_id = $1`, userID)
	if err != nil {
		return nil, sqldb.Wrap(err, "deleting recovery codes")
	}

	for range recoveryCodeCount {
		raw := make([]byte, recoveryCodeBytes)
		rand.Read(raw) // never fails
		code := base32.StdEncoding.EncodeToString(raw)
		_, err := tx.ExecContext(ctx, `INSERT INTO identity_recovery_codes (hash, user_id) VALUES ($1, $2)`,
			hashSecret(code), userID)
		if err != nil {
			return nil, sqldb.Wrap(err, "storing recovery codes")
		}

		codes = append(codes, code[:4]+"-"+code[4:8]+"-"+code[8:12]+"-"+code[12:])
	}

	return codes, nil
}

// DeleteOTP deletes a user's one-time password secrets and recovery codes.
func (c *Credentials) DeleteOTP(ctx context.Context, accountRef, username string) error {
	_, user, err := resolveUser(ctx, c.db, accountRef, username)
	if err != nil {
		return err
	}

	entry := c.audit.Entry(ctx, audit.UserUpdate, user.AccountID, "user:"+user.ID)
	return audit.Tx(ctx, c.audit, c.db.Tx, &entry, func(tx *sql.Tx) error {
		for _, table := range []string{"identity_otp", "identity_recovery_codes"} {
			_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, user.ID)
			if err != nil {
				return sqldb.Wrap(err, "deleting one-time passwords")
			}
		}

		return nil
	})
}

// RequireOTP sets whether an account's administrators need one-time passwords to log in.
// If they do, administrators without a secret can only enrol.
func (c *Credentials) RequireOTP(ctx context.Context, accountRef string, required bool) error {
	value := 0
	if required {
		value = 1
	}

	entry := c.audit.Entry(ctx, audit.AccountUpdate, "", "")
	return audit.Tx(ctx, c.audit, c.db.Tx, &entry, func(tx *sql.Tx) error {
		account, err := resolveAccount(ctx, tx, accountRef)
		if err != nil {
			return err
		}

		entry.AccountID, entry.Target = account.ID, "account:"+account.ID
		_, err = tx.ExecContext(ctx, `UPDATE identity_accounts SET admin_otp = $1 WHERE id = $2`, value, account.ID)
		return sqldb.Wrap(err, "storing an account's login rule")
	})
}

// OTPRequired reports whether RequireOTP is set for the account.
func (c *Credentials) OTPRequired(ctx context.Context, accountID string) (required bool, err error) {
	var value int
	row := c.db.QueryRowContext(ctx, `SELECT admin_otp FROM identity_accounts WHERE id = $1`, accountID)
	err = sqldb.FindInto(row, fault.NotFound("There is no account %s", quote(accountID)),
		"reading an account's login rule", &value)
	return value == 1, err
}
