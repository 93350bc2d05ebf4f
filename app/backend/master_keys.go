package backend

import (
	"path/filepath"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/settings"
)

// MasterKeys returns the keys that seal secrets in the database.
func MasterKeys(s *settings.Settings) (*masterkey.Keyring, error) {
	cfg := s.MasterKeys
	if cfg.Value == "" {
		cfg.File = MasterKeyFile(s)
	}
	keys, err := masterkey.Open(cfg)
	return keys, fault.Permanent(err) // reading again would fail too
}

// MasterKeyFile returns the path of the file with the master keys, used when
// the settings name none.
func MasterKeyFile(s *settings.Settings) string {
	if s.MasterKeys.File != "" {
		return s.MasterKeys.File
	}
	return filepath.Join(s.DataDir, "master.key")
}
