package savedlogin

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// headerTimeout is the timeout of a response's header. A body may take longer.
const headerTimeout = time.Minute

// Session calls a server as the user of the saved login.
type Session struct {
	file      loginFile
	login     login
	tlsConfig *tls.Config
	client    *http.Client
	accountID string // header X-Account-ID; "": the user's own
}

// Open reads the saved login. Without one it returns a usage error.
func Open(p *cli.Program) (*Session, error) {
	f, err := findLoginFile(p)
	if err != nil {
		return nil, err
	}

	l, err := f.read()
	if err != nil {
		return nil, err
	}

	tlsConfig, err := cli.ClientTLSFromFiles(l.Insecure, l.CAFiles...)
	if err != nil {
		return nil, cli.UsageError(err)
	}

	return &Session{file: f, login: l, tlsConfig: tlsConfig, client: newClient(tlsConfig)}, nil
}

// WithSession completes a command that uses the saved login.
func WithSession(p *cli.Program, command *cobra.Command,
	run func(cmd *cobra.Command, s *Session, args []string) error) *cobra.Command {
	command.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := Open(p)
		if err != nil {
			return err
		}
		defer s.Close()
		return run(cmd, s, args)
	}
	return command
}

// WithAccount is WithSession on behalf of the user's account, or of --account.
func WithAccount(p *cli.Program, command *cobra.Command,
	run func(cmd *cobra.Command, s *Session, args []string) error) *cobra.Command {
	account := command.Flags().String("account", "", "id of another account that you may see")
	return WithSession(p, command, func(cmd *cobra.Command, s *Session, args []string) error {
		s.accountID = *account
		return run(cmd, s, args)
	})
}

func newClient(tlsConfig *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		ResponseHeaderTimeout: headerTimeout, TLSHandshakeTimeout: headerTimeout,
	}}
}

// Close closes the connections.
func (s *Session) Close() { s.client.CloseIdleConnections() }

// TLS returns the configuration for the server's certificate.
func (s *Session) TLS() *tls.Config { return s.tlsConfig }

// URL returns the server's address, without a slash at its end.
func (s *Session) URL() string { return s.login.URL }
