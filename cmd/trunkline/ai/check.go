package ai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/ai/aicheck"
	"trunkline/internal/aiprotocol"
)

// checkFlags holds the flags of ai check that are not in aicheck.Config.
type checkFlags struct {
	format   string
	headers  []string
	asJSON   bool
	insecure bool
	ca       string

	secretFile, session string
}

func aiCheck(p *cli.Program) *cobra.Command {
	var cfg aicheck.Config
	var opts checkFlags
	command := &cobra.Command{
		Use:   "check ADDRESS",
		Short: "Check an AI provider against the protocol and report each result",
		Long: `Check an AI provider: connect as Trunkline does, run a session with a tone and
two key presses, hang up, and print one line for each check: pass, warn (Trunkline
tolerates it) or fail (calls are affected). The exit code is 1 when a check fails.

ADDRESS is wss://… or ws://…. Trunkline's rules for addresses and headers of
providers are not checked here.`,
		Args: cli.ExactArgs("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.URL = args[0]
			if err := opts.apply(&cfg); err != nil {
				return err
			}

			report, err := aicheck.Run(cmd.Context(), cfg)
			if err != nil {
				return fmt.Errorf("checking the provider: %w", err)
			}

			if err := printReport(p, report, opts.asJSON); err != nil {
				return err
			}

			n := report.Failed()
			if n > 0 {
				return fmt.Errorf("%d of %d checks failed", n, len(report.Points))
			}

			return nil
		},
	}

	flags := command.Flags()
	flags.StringVar(&opts.format, "format", aiprotocol.PCM16,
		"the provider's audioFormat: pcm16, g711_ulaw or opus (silence, no tone)")
	flags.StringVar(&cfg.Protocol, "protocol", "",
		"the provider's protocol: trunkline (default), twilio, openai_realtime or deepgram_agent")
	flags.StringVar(&opts.secretFile, "secret-file", "", "file with the provider's secret")
	flags.StringVar(&opts.session, "session", "", "the provider's session object, JSON")
	flags.StringArrayVar(&opts.headers, "header", nil, "header to send on connection, 'Name: value'; may be repeated")
	flags.BoolVar(&cfg.Extensions, "extensions", false,
		"also check the extensions (the provider is configured with extensions: true)")
	flags.DurationVar(&cfg.Duration, "duration", 3*time.Second, "duration of the tone")
	flags.BoolVar(&opts.asJSON, "json", false, "print the report as JSON")
	flags.BoolVar(&opts.insecure, "insecure", false, "accept any certificate; for tests only")
	flags.StringVar(&opts.ca, "ca", "", "file with CA certificates to trust in addition to the system's, PEM")

	return command
}

// apply copies the flags to cfg and validates it. Its errors are usage errors.
func (f checkFlags) apply(cfg *aicheck.Config) (err error) {
	cfg.Format, _ = aiprotocol.FormatOf(f.format)
	cfg.Header = http.Header{}
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return cli.Usagef("a header is 'Name: value'") // the argument may be a secret: not repeated
		}
		cfg.Header.Add(textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value))
	}

	if f.secretFile != "" {
		secret, err := os.ReadFile(f.secretFile)
		if err != nil {
			return cli.Usagef("the secret cannot be read: %v", err)
		}
		cfg.Secret = strings.TrimSpace(string(secret))
	}

	if f.session != "" {
		cfg.Session = []byte(f.session)
	}

	var files []string
	if f.ca != "" {
		files = []string{f.ca}
	}

	cfg.TLS, err = cli.ClientTLSFromFiles(f.insecure, files...)
	if err != nil {
		return cli.UsageError(err)
	}

	if f.format != cfg.Format.Encoding {
		return cli.Usagef("there is no format %q: want pcm16, g711_ulaw or opus", f.format)
	}
	if err := cfg.Validate(); err != nil {
		return cli.UsageError(err)
	}

	return nil
}

func printReport(p *cli.Program, report *aicheck.Report, asJSON bool) error {
	if !asJSON {
		return report.Print(p.Out)
	}

	encoder := json.NewEncoder(p.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(report); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}

	return nil
}
