package app

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"trunkline/app/backend"
	"trunkline/config/settings"
	"trunkline/internal/fault"
	"trunkline/internal/selfcheck"
	"trunkline/internal/setting"
)

// namedFile is a file in the settings.
type namedFile struct{ key, path string }

// checkFiles reads every file in the settings before anything is opened, so that all
// problems are reported at once and nothing has been changed yet.
func checkFiles(s *settings.Settings) error {
	var problems setting.Problems
	bad := func(key string, err error) {
		if err != nil {
			problems = append(problems, setting.Problem{Key: key, Text: err.Error()})
		}
	}
	for _, f := range []namedFile{
		{"directory_file", s.DirectoryFile}, {"master_key_file", s.MasterKeys.File},
		{"kafka.tls.ca_file", s.Kafka.TLS.CAFile}, {"redis.tls.ca_file", s.Redis.TLS.CAFile},
		{"kafka.sasl.password_file", s.Kafka.SASL.PasswordFile}, {"kafka.sasl.oauth.token_file", s.Kafka.SASL.OAuth.TokenFile},
	} {
		if f.path == "" {
			continue
		}
		text, err := os.ReadFile(f.path)
		if err == nil && (f.key == "kafka.tls.ca_file" || f.key == "redis.tls.ca_file") && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s holds no certificate in PEM", f.path)
		}
		clear(text)
		bad(f.key, err)
	}
	for _, p := range pairs(s) {
		_, err := p.load()
		bad(p.key, err)
	}
	if len(problems) == 0 { // else a file would be reported twice
		_, err := backend.MasterKeys(s)
		key := "master_key"
		if s.MasterKeys.Value == "" {
			key = "master_key_file"
		}
		bad(key, err)
	}
	if problems != nil {
		return problems
	}
	return nil
}

// pair is a certificate and its key in the settings.
type pair struct {
	key               string // setting
	certFile, keyFile string
}

// pairs returns the pairs that are in use.
func pairs(s *settings.Settings) (all []pair) {
	for _, p := range []pair{
		{"tls.cert_file", s.TLS.CertFile, s.TLS.KeyFile},
		{"kafka.tls.cert_file", s.Kafka.TLS.CertFile, s.Kafka.TLS.KeyFile},
		{"redis.tls.cert_file", s.Redis.TLS.CertFile, s.Redis.TLS.KeyFile},
	} {
		if p.certFile != "" && (p.key != "tls.cert_file" || s.TLS.Mode != "off") {
			all = append(all, p)
		}
	}
	return all
}

func (p pair) load() (*tls.Certificate, error) {
	loaded, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return nil, err
	}
	return &loaded, nil
}

// startSpace is the minimum number of bytes that a start writes.
const startSpace = 1 << 20

// ensureDataDir creates data_dir and checks that it is writable and that minFree
// bytes are free.
func ensureDataDir(dir string, minFree setting.Bytes) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if selfcheck.DiskFull(err) {
			return fmt.Errorf("data_dir: %w", err)
		}
		return fault.Permanent(fmt.Errorf("data_dir: %w (name a directory that this user may write to)", err))
	}
	// An existing directory may belong to another user.
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil && !selfcheck.DiskFull(err) {
		return fault.Permanent(fmt.Errorf("data_dir: %w (name a directory that this user may write to)", err))
	}
	space, err := selfcheck.SpaceOf(dir)
	if err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	if space.Free < startSpace {
		return fmt.Errorf("data_dir: the disk of %s is full, %s: free space there; stored data is not lost", dir, space)
	}
	if space.Below(uint64(minFree)) {
		return fmt.Errorf("data_dir: %s on the disk of %s, disk_min_free is %s: free space there, or lower disk_min_free", space, dir, minFree)
	}
	return nil
}

// checkDisk returns an error when less than disk_min_free is free for data_dir.
func (a *App) checkDisk() error {
	space, err := selfcheck.SpaceOf(a.settings.DataDir)
	if err != nil {
		return err
	}
	if space.Below(uint64(a.settings.DiskMinFree)) {
		return fmt.Errorf("%s on the disk of data_dir, disk_min_free is %s", space, a.settings.DiskMinFree)
	}
	return nil
}
