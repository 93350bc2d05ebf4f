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
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Phone is the user that a phone registers as.
type Phone struct {
	UserID    string
	AccountID string
	Domain    string // the account's: the realm of digest authentication
	Extension string // the user's presence_id: the digest's username
	username  string
}

// Device describes a password of a user's phone, without the password.
type Device struct {
	ID        string
	UserID    string
	Name      string
	CreatedAt time.Time
}

// HA1 has the hashes of extension:domain:password that digest authentication needs (RFC
// 7616, section 3.4.2), in hex; "" if not stored. They are secrets.
type HA1 struct{ MD5, SHA256 string }

const maxDevices = 10 // of one user

// FindPhone finds the user of a domain's extension. Returns fault.KindNotFound if there
// is none.
func (s *Service) FindPhone(ctx context.Context, domain, extension string) (Phone, error) {
	unknown := fault.NotFound("There is no phone %s", quote(extension))
	account, ok := s.Tree().ByDomain(domain)
	if !ok || extension == "" {
		return Phone{}, unknown
	}
	p := Phone{AccountID: account.ID, Domain: account.Domain, Extension: extension}
	row := s.db.QueryRowContext(ctx, `SELECT id, username FROM identity_users WHERE account_id = $1 AND presence_id = $2`, account.ID, extension)
	if err := sqldb.FindInto(row, unknown, "reading a phone", &p.UserID, &p.username); err != nil {
		return Phone{}, err
	}
	return p, nil
}

// AuthenticatePhone authenticates a phone with an IP address. It calls proves with the
// HA1 of each of the user's passwords until proves returns true: the phone's response
// was computed from that password. Failures count as failed logins of the user. Returns
// fault.KindLimited, without a call of proves, above their limit, and
// fault.KindUnauthenticated if no password matched.
func (s *Service) AuthenticatePhone(ctx context.Context, domain, extension, address string, proves func(HA1) bool) error {
	phone, err := s.FindPhone(ctx, domain, extension)
	result := resultError
	if err == nil || fault.KindOf(err) == fault.KindNotFound {
		result, err = s.provePhone(ctx, phone, domain, extension, address, proves)
	}
	s.metrics.phones.WithLabelValues(result).Inc()
	s.reportPhone(ctx, phone, domain, address, result)
	return err
}

// reportPhone writes a refused phone to the audit log. An unknown extension is not
// written, because the sender chose its text.
func (s *Service) reportPhone(ctx context.Context, phone Phone, domain, address, result string) {
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

// provePhone authenticates a phone. If the extension does not exist, phone is empty and
// a failure counts against domain and extension.
func (s *Service) provePhone(ctx context.Context, phone Phone, domain, extension, address string, proves func(HA1) bool) (result string, err error) {
	a := newAttempt(phone.Domain, phone.username, address)
	if phone.UserID == "" {
		a = newAttempt(domain, "\x00"+extension, address) // no username has a zero byte
	}
	if err := s.allow(ctx, a); err != nil {
		return resultLimited, err
	}
	// One at a time per user, so that concurrent guesses do not exceed the limit.
	defer s.proving.lock(a.user)()
	if err := s.allow(ctx, a); err != nil {
		return resultLimited, err
	}
	secrets, err := s.phoneSecrets(ctx, phone)
	if err != nil {
		return resultError, err
	}
	for _, secret := range secrets {
		if !proves(secret.HA1) || phone.UserID == "" {
			continue
		}
		s.addresses.add(ctx, a, phone.UserID)
		if !secret.portal {
			return resultOK, nil
		}
		if s.cfg.SIPPortalPassword == WarnPortalPassword {
			s.log.WarnContext(ctx, "phone registered with a portal password: create a device password for it", "user_id", phone.UserID)
		}
		return resultPortal, nil
	}
	if err := s.failed(ctx, a); err != nil {
		return resultLimited, err
	}
	return resultWrong, fault.Unauthenticated("Wrong extension or password")
}

// phoneSecret is one password of a phone.
type phoneSecret struct {
	HA1
	portal bool // the user's portal password
}

// phoneSecrets returns the passwords with which the phone can authenticate. For an
// unknown phone it returns a random one, so that the response takes as long.
func (s *Service) phoneSecrets(ctx context.Context, phone Phone) ([]phoneSecret, error) {
	if phone.UserID == "" {
		return []phoneSecret{{HA1: newHA1("", "", rand.Text())}}, nil
	}
	type sealed struct{ id, secret string }
	rows, err := s.db.QueryContext(ctx, `SELECT id, secret FROM identity_device_passwords WHERE user_id = $1 ORDER BY created_at, id`, phone.UserID)
	found, err := sqldb.Collect(rows, err, "reading the passwords of a phone", func(scan sqldb.ScanFunc) (one sealed, err error) {
		err = scan(&one.id, &one.secret)
		return one, err
	})
	if err != nil {
		return nil, err
	}
	secrets := make([]phoneSecret, 0, len(found)+1)
	for _, one := range found {
		plain, err := s.keyring.Unseal(one.secret, devicePlace, one.id)
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
	plain, err := s.keyring.Unseal(portal, portalPlace, phone.UserID)
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

// CreateDevice makes a password for a phone of a user. The password is returned
// only here. It is valid as long as the user keeps the extension.
func (s *Service) CreateDevice(ctx context.Context, accountRef, username, name string) (password string, d Device, err error) {
	if name != "" {
		var bad problems
		bad.text("name", name, maxName, printable)
		if err := bad.fault("Invalid device"); err != nil {
			return "", Device{}, err
		}
	}
	password = rand.Text()
	d = Device{ID: sqldb.NewID(), Name: name, CreatedAt: s.now()}
	entry := s.audit.Entry(ctx, audit.DeviceCreate, "", "device:"+d.ID)
	err = audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		account, user, err := resolveUser(ctx, tx, accountRef, username)
		if err != nil {
			return err
		}
		d.UserID, entry.AccountID = user.ID, account.ID
		return s.insertDevice(ctx, tx, d, user.PresenceID, account.Domain, password)
	})
	if err != nil {
		return "", Device{}, err
	}
	return password, d, nil
}

func (s *Service) insertDevice(ctx context.Context, tx *sql.Tx, d Device, extension, domain, password string) error {
	if extension == "" {
		return fault.New(fault.KindUnprocessable, "The user has no extension that a phone could register as: presence_id is not set")
	}
	var devices int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_device_passwords WHERE user_id = $1`, d.UserID).Scan(&devices); err != nil {
		return sqldb.Wrap(err, "counting the devices of a user")
	}
	if devices >= maxDevices {
		return fault.Conflict("The user has %d devices already, the maximum", devices)
	}
	ha1 := newHA1(extension, domain, password)
	sealed, err := s.keyring.Seal([]byte(ha1.MD5+":"+ha1.SHA256), devicePlace, d.ID)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO identity_device_passwords (id, user_id, name, secret, master_key_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`, d.ID, d.UserID, d.Name, sealed, masterkey.KeyID(sealed), d.CreatedAt.UnixMilli())
	return sqldb.Wrap(err, "storing a device")
}

// ListDevices lists a user's devices, the oldest first.
func (s *Service) ListDevices(ctx context.Context, accountRef, username string) ([]Device, error) {
	_, user, err := resolveUser(ctx, s.db, accountRef, username)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, name, created_at FROM identity_device_passwords WHERE user_id = $1 ORDER BY created_at, id`, user.ID)
	return sqldb.Collect(rows, err, "reading devices", func(scan sqldb.ScanFunc) (Device, error) {
		d := Device{UserID: user.ID}
		var created int64
		err := scan(&d.ID, &d.Name, &created)
		d.CreatedAt = time.UnixMilli(created)
		return d, err
	})
}

// DeleteDevice ends a device's password by its id.
func (s *Service) DeleteDevice(ctx context.Context, id string) error {
	entry := s.audit.Entry(ctx, audit.DeviceDelete, "", "device:"+id)
	return audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `DELETE FROM identity_device_passwords WHERE id = $1
			RETURNING (SELECT account_id FROM identity_users u WHERE u.id = user_id)`, id)
		return sqldb.FindInto(row, fault.NotFound("There is no device %s", quote(id)), "deleting a device", &entry.AccountID)
	})
}

// storePortalHA1 stores the hash with which the user's phone can register under the
// portal password. It stores nothing if the settings refuse that password, if MD5 is
// forbidden (FIPS 140) or without a master key.
func (s *Service) storePortalHA1(ctx context.Context, db sqldb.Runner, u User, domain, password string) error {
	if u.PresenceID == "" || s.cfg.SIPPortalPassword == RefusePortalPassword || fips140.Enforced() {
		return nil
	}
	sealed, err := s.keyring.Seal([]byte(newHA1(u.PresenceID, domain, password).MD5), portalPlace, u.ID)
	if fault.KindOf(err) == fault.KindUnavailable {
		s.log.InfoContext(ctx, "no master key: the user's phone cannot register with the portal password until a login after a key is set",
			"user_id", u.ID)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO identity_devices (user_id, ha1, master_key_id, created_at)
		VALUES ($1, $2, $3, $4) ON CONFLICT (user_id) DO NOTHING`,
		u.ID, sealed, masterkey.KeyID(sealed), s.now().UnixMilli())
	return sqldb.Wrap(err, "storing a phone")
}

// replacePortalHA1 stores the portal HA1 of a user whose password changes.
func (s *Service) replacePortalHA1(ctx context.Context, tx *sql.Tx, u User, domain, password string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM identity_devices WHERE user_id = $1`, u.ID); err != nil {
		return sqldb.Wrap(err, "deleting a phone")
	}
	return s.storePortalHA1(ctx, tx, u, domain, password)
}

// ensurePortalHA1 stores the portal HA1 of a user who has just logged in and has none. A
// failure is logged and does not fail the login.
func (s *Service) ensurePortalHA1(ctx context.Context, u User, password string) {
	account, ok := s.Tree().Account(u.AccountID)
	if !ok || u.PresenceID == "" || s.cfg.SIPPortalPassword == RefusePortalPassword {
		return
	}
	var there bool
	err := s.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM identity_devices WHERE user_id = $1)`, u.ID).Scan(&there)
	if err == nil && !there {
		err = s.storePortalHA1(ctx, s.db, u, account.Domain, password)
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "storing a user's SIP device failed", slog.String("user_id", u.ID), slog.Any("error", err))
	}
}

// stripedLock is a fixed set of locks; a key's hash selects its lock.
type stripedLock struct {
	once  sync.Once
	seed  maphash.Seed
	locks [256]sync.Mutex
}

// lock locks a key and returns the function that unlocks it.
func (l *stripedLock) lock(key string) (unlock func()) {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	one := &l.locks[maphash.String(l.seed, key)%uint64(len(l.locks))]
	one.Lock()
	return one.Unlock
}
