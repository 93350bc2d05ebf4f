package ai

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/ai/aiecho"
)

// echoFlags holds the listener's address and certificate.
type echoFlags struct{ listen, cert, key string }

func aiEcho(p *cli.Program) *cobra.Command {
	var opts echoFlags
	command := &cobra.Command{
		Use:   "echo",
		Short: "Run an AI provider that echoes the audio and prints the messages it gets",
		Long: `Run an AI provider that sends the audio back and prints each call with its
numbers, each key press, and a line about the audio every few seconds.

Without --cert and --key it serves ws://. Trunkline connects to ws:// only on
loopback, and only when ai_provider.allow_networks contains it (127.0.0.0/8).`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (opts.cert == "") != (opts.key == "") {
				return cli.Usagef("ai echo needs --cert and --key together")
			}

			listener, err := net.Listen("tcp", opts.listen)
			if err != nil {
				return fmt.Errorf("listening: %w", err)
			}

			scheme := "ws"
			if opts.cert != "" {
				scheme = "wss"
			}

			_, err = fmt.Fprintf(p.Out, "listening on %s://%s\n", scheme, listener.Addr())
			if err != nil {
				return errors.Join(fmt.Errorf("printing: %w", err), listener.Close())
			}

			return serveEcho(p, cmd.Context(), listener, opts)
		},
	}

	flags := command.Flags()
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:9555", "address to listen on, host:port")
	flags.StringVar(&opts.cert, "cert", "", "file with the certificate, PEM")
	flags.StringVar(&opts.key, "key", "", "file with its key, PEM")

	return command
}

// serveEcho serves sessions until ctx ends.
func serveEcho(p *cli.Program, ctx context.Context, listener net.Listener, opts echoFlags) error {
	provider := aiecho.New(p.Out)

	server := &http.Server{Handler: provider, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(p.Err, "trunkline: ", 0)}
	ended := make(chan error, 1)
	go func() {
		if opts.cert != "" {
			ended <- server.ServeTLS(listener, opts.cert, opts.key)
			return
		}
		ended <- server.Serve(listener)
	}()

	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = server.Close()
		<-ended
	}

	provider.Close()
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}

	return nil
}
