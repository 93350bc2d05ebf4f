package identity

import (
	"context"

	"trunkline/internal/masterkey"
)

const (
	portalPlace  = "identity_devices"
	devicePlace  = "identity_device_passwords"
	signingPlace = "identity_signing_keys"
	otpPlace     = "identity_otp"
	addressPlace = "identity_address_keys"
)

// Secrets returns the tables of this package with secrets sealed under the master key.
func (s *Service) Secrets() []masterkey.SecretStore {
	return []masterkey.SecretStore{s.portalSecrets(), s.deviceSecrets(), s.signingSecrets(), s.otpSecrets(), s.addressSecrets()}
}

// portalSecrets returns the table of the portal passwords of phones.
func (s *Service) portalSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: portalPlace, Key: []string{"user_id"}, Secret: "ha1"}
}

// deviceSecrets returns the table of the phones' own passwords.
func (s *Service) deviceSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: devicePlace, Key: []string{"id"}, Secret: "secret"}
}

func (s *Service) signingSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: signingPlace, Key: []string{"id"}, Secret: "seed"}
}

// otpSecrets returns the table of the secrets of one-time passwords.
func (s *Service) otpSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: otpPlace, Key: []string{"id"}, Secret: "secret"}
}

// addressSecrets returns the table of the key of known addresses' hashes.
func (s *Service) addressSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: addressPlace, Key: []string{"id"}, Secret: "secret"}
}

// RequireSecrets returns an error if a master key is missing under which a secret of
// this package is sealed.
func (s *Service) RequireSecrets(ctx context.Context) error {
	for _, store := range s.Secrets() {
		inUse, err := store.MasterKeys(ctx)
		if err != nil {
			return err
		}
		if err := s.keyring.Require(inUse...); err != nil {
			return err
		}
	}
	return nil
}
