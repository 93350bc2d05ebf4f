package identity

import (
	"context"

	"trunkline/internal/masterkey"
)

// Tables with a column that is sealed under the master key.
const (
	portalTable     = "identity_devices"
	deviceTable     = "identity_device_passwords"
	signingKeyTable = "identity_signing_keys"
	otpTable        = "identity_otp"
	addressKeyTable = "identity_address_keys"
)

// Secrets returns the tables of this package with secrets sealed under the master key.
func (s *Service) Secrets() []masterkey.SecretStore {
	return []masterkey.SecretStore{s.portalSecrets(), s.deviceSecrets(), s.signingSecrets(), s.otpSecrets(),
		s.addressSecrets()}
}

// portalSecrets returns the table of the portal passwords' hashes for phones.
func (s *Service) portalSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: portalTable, Key: []string{"user_id"}, Secret: "ha1"}
}

// deviceSecrets returns the table of the device passwords' hashes.
func (s *Service) deviceSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: deviceTable, Key: []string{"id"}, Secret: "secret"}
}

func (s *Service) signingSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: signingKeyTable, Key: []string{"id"}, Secret: "seed"}
}

// otpSecrets returns the table of the secrets of one-time passwords.
func (s *Service) otpSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: otpTable, Key: []string{"id"}, Secret: "secret"}
}

// addressSecrets returns the table of the key of known addresses' hashes.
func (s *Service) addressSecrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: addressKeyTable, Key: []string{"id"}, Secret: "secret"}
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
