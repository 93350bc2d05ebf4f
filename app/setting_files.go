package app

import (
	"crypto/x509"
	"fmt"
	"os"

	"trunkline/app/backend"
	"trunkline/internal/certificate"
	"trunkline/internal/setting"
	"trunkline/settings"
)

// settingFile is a file in the settings.
type settingFile struct{ key, path string }

// checkFiles reads every file named in the settings before anything is opened or changed, so that
// all problems are reported at once.
func checkFiles(s *settings.Settings) error {
	var problems setting.Problems
	addProblem := func(key string, err error) {
		if err != nil {
			problems = append(problems, setting.Problem{Key: key, Text: err.Error()})
		}
	}
	for _, f := range []settingFile{
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
		addProblem(f.key, err)
	}
	for _, p := range certificatePairs(s) {
		_, err := p.Load()
		addProblem(p.Setting, err)
	}
	if len(problems) == 0 { // else a file would be reported twice
		_, err := backend.MasterKeys(s)
		key := "master_key"
		if s.MasterKeys.Value == "" {
			key = "master_key_file"
		}
		addProblem(key, err)
	}
	if problems != nil {
		return problems
	}
	return nil
}

// certificatePairs returns the pairs in the settings that this process uses.
func certificatePairs(s *settings.Settings) (all []certificate.Pair) {
	for _, p := range []certificate.Pair{
		{Setting: "tls.cert_file", CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile},
		{Setting: "kafka.tls.cert_file", CertFile: s.Kafka.TLS.CertFile, KeyFile: s.Kafka.TLS.KeyFile},
		{Setting: "redis.tls.cert_file", CertFile: s.Redis.TLS.CertFile, KeyFile: s.Redis.TLS.KeyFile},
	} {
		if p.CertFile != "" && (p.Setting != "tls.cert_file" || s.TLS.Mode != "off") {
			all = append(all, p)
		}
	}
	return all
}
