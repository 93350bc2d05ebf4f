package identity

import (
	"context"

	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Tables with a column that is sealed under the master key.
const (
	portalTable     = "identity_devices"          // hashes of portal passwords, for phones
	deviceTable     = "identity_device_passwords" // hashes of device passwords
	signingKeyTable = "identity_signing_keys"
	otpTable        = "identity_otp"          // secrets of one-time passwords
	addressKeyTable = "identity_address_keys" // key of known addresses' hashes
)

// Secrets returns the tables of this package with secrets sealed under the master key.
func Secrets(db *sqldb.DB, keys *masterkey.Keyring) []masterkey.SecretStore {
	return []masterkey.SecretStore{
		secretTable(db, keys, portalTable, "user_id", "ha1"),
		secretTable(db, keys, deviceTable, "id", "secret"),
		secretTable(db, keys, signingKeyTable, "id", "seed"),
		secretTable(db, keys, otpTable, "id", "secret"),
		secretTable(db, keys, addressKeyTable, "id", "secret"),
	}
}

func secretTable(db *sqldb.DB, keys *masterkey.Keyring, name, keyColumn, secretColumn string) masterkey.SealedTable {
	return masterkey.SealedTable{DB: db, Keyring: keys, Table: name,
		KeyColumns: []string{keyColumn}, SecretColumn: secretColumn}
}

// RequireSecrets returns an error if a master key is missing under which a secret of
// this package is sealed.
func RequireSecrets(ctx context.Context, db *sqldb.DB, keys *masterkey.Keyring) error {
	for _, store := range Secrets(db, keys) {
		inUse, err := store.MasterKeys(ctx)
		if err != nil {
			return err
		}

		if err := keys.Require(inUse...); err != nil {
			return err
		}
	}

	return nil
}
