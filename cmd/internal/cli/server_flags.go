package cli

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// ServerFlags are the flags of a command that calls a server's HTTP API.
type ServerFlags struct {
	program       *Program
	serverURL, ca string
	insecure      bool
}

// ServerFlags registers --url, --ca and --insecure.
func (p *Program) ServerFlags(flags *pflag.FlagSet) *ServerFlags {
	f := &ServerFlags{program: p}
	flags.StringVar(&f.serverURL, "url", "", "URL of the server; empty: this machine, with the port in the settings")
	flags.StringVar(&f.ca, "ca", "", "file with certificates to trust in addition to the system's, PEM")
	flags.BoolVar(&f.insecure, "insecure", false, "accept any certificate; for tests only")
	return f
}

// URL returns the server's address without a slash at its end.
func (f *ServerFlags) URL() (string, error) {
	s, err := f.program.Settings()
	if err != nil {
		return "", err
	}

	address := strings.TrimRight(f.serverURL, "/")
	if address == "" {
		address = ServerURL(s)
	}

	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.User != nil || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return "", Usagef("--url must be https://host:port, without a user")
	}

	return address, nil
}

// TrustedFiles returns the certificate files that the flags and the data directory name at the
// time of the call, and whether any certificate is accepted.
func (f *ServerFlags) TrustedFiles() (files []string, insecure bool, err error) {
	s, err := f.program.Settings()
	if err != nil {
		return nil, false, err
	}
	return settingsFiles(s, f.ca), f.insecure, nil
}

// Client returns an HTTP client that trusts the certificates that the flags and the data
// directory name at the time of the call: a server creates its own certificate at its first
// start.
func (f *ServerFlags) Client() (*http.Client, error) {
	files, insecure, err := f.TrustedFiles()
	if err != nil {
		return nil, err
	}

	tlsConfig, err := ClientTLSFromFiles(insecure, files...)
	if err != nil {
		return nil, UsageError(err)
	}

	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, Timeout: time.Minute}, nil
}
