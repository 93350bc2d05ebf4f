package identity

import (
	"context"
	"crypto/fips140"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"strings"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Phone is the user that a phone registers as.
type Phone struct {
	UserID    string
	AccountID string
	Domain    string // of the account; the realm of digest authentication
	Extension string // presence_id of the user; the username of digest authentication
	username  string
}

// HA1 has the hashes of extension:domain:password that digest authentication needs (RFC
// 7616, section 3.4.2), in hex; "" if not stored. They are secrets.
type HA1 struct{ MD5, SHA256 string }

// FindPhone finds the user of a domain's extension. Returns fault.KindNotFound if there
// is none.
func (s *Service) FindPhone(ctx context.Context, domain, extension string) (Phone, error) {
	unknown := fault.NotFound("There is no phone %s", quote(extension))
	account, ok := s.Tree().ByDomain(domain)
	if !ok || extension == "" {
		return Phone{}, unknown
	}
	p := Phone{AccountID: account.ID, Domain: account.Domain, Extension: extension}
	row := s.db.QueryRowContext(ctx,
		`SELECT id, username FROM identity_users WHERE account_id = $1 AND presence_id = $2`, account.ID, extension)
	if err := sqldb.FindInto(row, unknown, "reading a phone", &p.UserID, &p.username); err != nil {
		return Phone{}, err
	}
	return p, nil
}

// AuthenticatePhone authenticates a phone with an IP address. It calls verifyResponse
// with the HA1 of each of the user's passwords until verifyResponse returns true, which
// means that the phone's response was computed from that password. Failures count as
// failed logins of the user. Returns fault.KindLimited above the limits of the address,
// without a call of verifyResponse, and above the user's own if no device password matched,
// and fault.KindUnauthenticated if no password matched.
func (s *Service) AuthenticatePhone(ctx context.Context, domain, extension, address string,
	verifyResponse func(HA1) bool) error {
	phone, err := s.FindPhone(ctx, domain, extension)
	result := resultError
	if err == nil || fault.KindOf(err) == fault.KindNotFound {
		result, err = s.verifyPhone(ctx, phone, domain, extension, address, verifyResponse)
	}
	s.metrics.phones.WithLabelValues(result).Inc()
	s.auditRefusedPhone(ctx, phone, domain, address, result)
	return err
}

// auditRefusedPhone writes the refusal of a phone to the audit log. An unknown extension
// is not written, because its text is arbitrary input of the client.
func (s *Service) auditRefusedPhone(ctx context.Context, phone Phone, domain, address, result string) {
	if result != resultWrong && result != resultLimited {
		return
	}
	if account, ok := s.Tree().ByDomain(domain); ok {
		phone.AccountID = account.ID
	}
	e := s.audit.Entry(ctx, audit.SIPRegisterFailed, phone.AccountID, "")
	e.Actor, e.Address, e.Outcome = "", address, "unknown_user"
	if phone.UserID != "" {
		e.Actor, e.Target, e.Outcome = "sip:"+phone.Extension, "user:"+phone.UserID, "wrong_password"
	}
	if result == resultLimited {
		e.Outcome = "limited"
		s.audit.ReportOnce(ctx, e)
		return
	}
	s.audit.Report(ctx, e)
}

// verifyPhone is AuthenticatePhone for a phone that was found. If the extension does not
// exist, phone is empty and a failure counts against domain and extension.
func (s *Service) verifyPhone(ctx context.Context, phone Phone, domain, extension, address string,
	verifyResponse func(HA1) bool) (result string, err error) {
	a := newAttempt(phone.Domain, phone.username, address)
	if phone.UserID == "" {
		a = newAttempt(domain, "\x00"+extension, address) // no username has a zero byte
	}
	_, err = s.checkLimitsOrLock(ctx, a)
	if err != nil {
		return resultLimited, err
	}
	// Attempts for one user are serialized, so that concurrent guesses do not exceed the limit.
	defer s.phoneLocks.lock(a.user)()
	locked, err := s.checkLimitsOrLock(ctx, a)
	if err != nil {
		return resultLimited, err
	}
	secrets, err := s.phoneSecrets(ctx, phone)
	if err != nil {
		return resultError, err
	}
	for _, secret := range secrets {
		// A device password cannot be guessed, so guesses elsewhere do not stop its phone.
		if locked && secret.portal || !verifyResponse(secret.HA1) || phone.UserID == "" {
			continue
		}
		s.addresses.add(ctx, a, phone.UserID)
		if !secret.portal {
			return resultOK, nil
		}
		if s.cfg.SIPPortalPassword == WarnPortalPassword {
			s.log.WarnContext(ctx, "phone registered with a portal password: create a device password for it",
				"user_id", phone.UserID)
		}
		return resultPortal, nil
	}
	if err := s.countFailure(ctx, a); err != nil {
		return resultLimited, err
	}
	return resultWrong, fault.Unauthenticated("Wrong extension or password")
}

// phoneSecret is one password of a phone.
type phoneSecret struct {
	HA1
	portal bool // it is the user's portal password
}

// phoneSecrets returns the hashes of the passwords with which the phone can authenticate.
// For an unknown phone it returns a random one, so that the verification takes as long.
func (s *Service) phoneSecrets(ctx context.Context, phone Phone) ([]phoneSecret, error) {
	if phone.UserID == "" {
		return []phoneSecret{{HA1: newHA1("", "", rand.Text())}}, nil
	}
	type sealed struct{ id, secret string }
	rows, err := s.db.QueryContext(ctx,
		`SELECT id, secret FROM identity_device_passwords WHERE user_id = $1 ORDER BY created_at, id`, phone.UserID)
	found, err := sqldb.Collect(rows, err, "reading the passwords of a phone",
		func(scan sqldb.ScanFunc) (row sealed, err error) {
			err = scan(&row.id, &row.secret)
			return row, err
		})
	if err != nil {
		return nil, err
	}
	secrets := make([]phoneSecret, 0, len(found)+1)
	for _, row := range found {
		plain, err := s.keyring.Unseal(row.secret, deviceTable, row.id)
		if err != nil {
			return nil, err
		}
		var secret phoneSecret
		secret.MD5, secret.SHA256, _ = strings.Cut(string(plain), ":")
		secrets = append(secrets, secret)
	}
	if s.cfg.SIPPortalPassword == RefusePortalPassword {
		return secrets, nil
	}
	var portal string
	err = s.db.QueryRowContext(ctx, `SELECT ha1 FROM identity_devices WHERE user_id = $1`, phone.UserID).Scan(&portal)
	if errors.Is(err, sql.ErrNoRows) {
		return secrets, nil
	}
	if err != nil {
		return nil, sqldb.Wrap(err, "reading the portal password of a phone")
	}
	plain, err := s.keyring.Unseal(portal, portalTable, phone.UserID)
	return append(secrets, phoneSecret{HA1: HA1{MD5: string(plain)}, portal: true}), err
}

func newHA1(extension, domain, password string) HA1 {
	text := []byte(extension + ":" + domain + ":" + password)
	strong := sha256.Sum256(text)
	ha1 := HA1{SHA256: hex.EncodeToString(strong[:])}
	if !fips140.Enforced() {
		weak := md5.Sum(text)
		ha1.MD5 = hex.EncodeToString(weak[:])
	}
	return ha1
}
