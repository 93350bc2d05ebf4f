package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// healthTimeout is the timeout of the readiness request.
const healthTimeout = 3 * time.Second

// healthCommand returns the command for health checks in containers, which have neither a shell
// nor curl.
func healthCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Check that the server on this machine is ready: exit code 0 if it is, else 1",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := p.Settings()
			if err != nil {
				return err
			}
			return checkReady(cmd.Context(), p.Out, s.MetricsListen)
		},
	}
}

// checkReady requests the readiness of the server at the address and prints its response.
func checkReady(ctx context.Context, out io.Writer, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("metrics_listen: %w", err)
	}

	address, err := netip.ParseAddr(host)
	// An address to listen on, not one to connect to.
	if host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}

	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz",
		nil)
	if err != nil {
		return fmt.Errorf("asking for readiness: %w", err)
	}

	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for readiness: %w", err)
	}
	defer answer.Body.Close()

	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("asking for readiness: %w", err)
	}

	text := strings.TrimSpace(string(body))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", text)
	}

	_, err = out.Write(body)
	return err
}
