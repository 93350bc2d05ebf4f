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
)

// namedFile is a file that a setting names.
type namedFile struct{ key, path string }

// checkFiles reads every file that a setting names, before anything is opened:
// all problems are reported at once, and nothing has been changed yet.
func checkFiles(s *settings.Settings) error {
	var problems settings.Problems
	bad := func(key string, err error) {
		if err != nil {
			problems = append(problems, settings.Problem{Key: key, Text: err.Error()})
		}
	}
	for _, f := range []namedFile{
		{"directory_file", s.DirectoryFile}, {"master_key_file", s.MasterKeyFile},
		{"kafka.tls.ca_file", s.Kafka.TLS.CAFile}, {"redis.tls.ca_file", s.Redis.TLS.CAFile},
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
	if len(problems) == 0 { // else the same file is blamed twice
		_, err := backend.MasterKeys(s)
		key := "master_key"
		if s.MasterKey == "" {
			key = "master_key_file"
		}
		bad(key, err)
	}
	if problems != nil {
		return problems
	}
	return nil
}

// pair is a certificate and its key that settings name.
type pair struct {
	key               string // setting
	certFile, keyFile string
}

// pairs are those of the settings that are in use.
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

// startSpace is the number of bytes that a start writes at least.
const startSpace = 1 << 20

// ensureDataDir creates data_dir and checks that it is writable and has space.
func ensureDataDir(dir string) error {
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
		return fmt.Errorf("data_dir: the disk of %s is full, %s: make room there, nothing stored is lost", dir, space)
	}
	return nil
}
