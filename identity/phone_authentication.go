package identity

import (
	"context"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
)

// AuthenticatePhone authenticates a phone with an IP address. It calls verifyResponse
// with the HA1 of each of the user's passwords until verifyResponse returns true, which
// means that the phone's response was computed from that password. Failures count as
// failed logins of the user. Returns fault.KindLimited above the limits of the address,
// without a call of verifyResponse, and above the user's own if no device password matched,
// and fault.KindUnauthenticated if no password matched.
func (c *Credentials) AuthenticatePhone(ctx context.Context, domain, extension, address string,
	verifyResponse func(HA1) bool) error {
	phone, err := c.directory.FindPhone(ctx, domain, extension)
	result := resultError
	if err == nil || fault.KindOf(err) == fault.KindNotFound {
		result, err = c.verifyPhone(ctx, phone, domain, extension, address, verifyResponse)
	}
	c.metrics.phones.WithLabelValues(result).Inc()
	c.auditRefusedPhone(ctx, phone, domain, address, result)
	return err
}

// auditRefusedPhone writes the refusal of a phone to the audit log. An unknown extension
// is not written, because its text is arbitrary input of the client.
func (c *Credentials) auditRefusedPhone(ctx context.Context, phone Phone, domain, address, result string) {
	if result != resultWrong && result != resultLimited {
		return
	}
	if account, ok := c.directory.Tree().ByDomain(domain); ok {
		phone.AccountID = account.ID
	}

	e := c.audit.Entry(ctx, audit.SIPRegisterFailed, phone.AccountID, "")
	e.Actor, e.Address, e.Outcome = "", address, "unknown_user"
	if phone.UserID != "" {
		e.Actor, e.Target, e.Outcome = "sip:"+phone.Extension, "user:"+phone.UserID, "wrong_password"
	}

	if result == resultLimited {
		e.Outcome = "limited"
		c.audit.ReportOnce(ctx, e)
		return
	}

	c.audit.Report(ctx, e)
}

// verifyPhone is AuthenticatePhone for a phone that was found. If the extension does not
// exist, phone is empty and a failure counts against domain and extension.
func (c *Credentials) verifyPhone(ctx context.Context, phone Phone, domain, extension, address string,
	verifyResponse func(HA1) bool) (result string, err error) {
	a := newLoginAttempt(phone.Domain, phone.username, address)
	if phone.UserID == "" {
		a = newLoginAttempt(domain, "\x00"+extension, address) // no username has a zero byte
	}

	// Checked before the lock, so that refused attempts do not wait for it, and again under it.
	_, err = c.limits.checkOrLock(ctx, a)
	if err != nil {
		return resultLimited, err
	}

	// Attempts for one user are serialized, so that concurrent guesses do not exceed the limit.
	unlock, err := c.phoneLocks.Lock(ctx, a.user)
	if err != nil {
		return resultError, fault.Unavailable(err, time.Second, "Other attempts of the phone's user are not done yet")
	}
	defer unlock()

	locked, err := c.limits.checkOrLock(ctx, a)
	if err != nil {
		return resultLimited, err
	}

	secrets, err := c.phones.phoneSecrets(ctx, phone)
	if err != nil {
		return resultError, err
	}

	for _, secret := range secrets {
		// A device password cannot be guessed, so guesses elsewhere do not stop its phone.
		if locked && secret.portal || !verifyResponse(secret.HA1) || phone.UserID == "" {
			continue
		}

		c.limits.addresses.add(ctx, a, phone.UserID)
		if !secret.portal {
			return resultOK, nil
		}
		if c.cfg.SIPPortalPassword == WarnPortalPassword {
			c.log.WarnContext(ctx, "phone registered with a portal password: create a device password for it",
				"user_id", phone.UserID)
		}

		return resultPortal, nil
	}

	if err := c.limits.countFailure(ctx, a); err != nil {
		return resultLimited, err
	}

	return resultWrong, fault.Unauthenticated("Wrong extension or password")
}
