// Command driver runs clients/go: see package conformance for the line protocol.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"trunkline/clients/conformance"
	trunkline "trunkline/clients/go"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	input := bufio.NewScanner(os.Stdin)
	if !input.Scan() {
		return errors.New("no settings on stdin")
	}

	var s conformance.Settings
	if err := json.Unmarshal(input.Bytes(), &s); err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	resumed := make(chan struct{}, 1)
	go func() {
		for input.Scan() {
			var command struct{ Do string }
			if json.Unmarshal(input.Bytes(), &command) != nil {
				continue // never sent by package conformance
			}

			switch command.Do {
			case "stop":
				stop()
			case "resume":
				resumed <- struct{}{}
			}
		}
	}()

	return put(conformance.Line{Kind: "end", Error: described(follow(ctx, s, resumed))})
}

func follow(ctx context.Context, s conformance.Settings, resumed <-chan struct{}) error {
	cfg := trunkline.Config{URL: s.URL, Username: s.Username, Password: s.Password, Domain: s.Domain, APIKey: s.APIKey}
	if s.PortalToken != "" {
		cfg.PortalToken = func(context.Context) (string, error) { return s.PortalToken, nil }
	}

	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return fmt.Errorf("reading the certificate: %w", err)
		}
		cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		cfg.TLS.RootCAs.AppendCertsFromPEM(text)
	}

	client, err := trunkline.New(cfg)
	if err != nil {
		return err
	}
	defer client.Close()

	options := trunkline.Options{
		Since: s.Since, Snapshot: s.Snapshot, RetryMin: milliseconds(s.RetryMin), RetryMax: milliseconds(s.RetryMax),
		Silence: milliseconds(s.Silence),
		Filters: trunkline.Filters{
			AccountIDs: s.Filters["account_ids"], EventTypes: s.Filters["event_types"],
			QueueIDs: s.Filters["queue_ids"],
			AgentIDs: s.Filters["agent_ids"], CallIDs: s.Filters["call_ids"], Names: s.Filters["names"],
		},
		Status: func(status trunkline.Status) {
			line := conformance.Line{Kind: "status", State: "connected", Error: described(status.Err),
				RetryIn: float64(status.RetryIn) / float64(time.Millisecond)}
			if status.Err != nil {
				line.State = "waiting"
			}
			_ = put(line) // the reader is gone: the test ends
		},
	}

	if s.Store != "" {
		options.Store = trunkline.FileStore(s.Store)
	}

	for item, err := range client.Subscribe(ctx, options) {
		if err != nil {
			return err
		}

		line := conformance.Line{Kind: "event"}
		if item.Snapshot != nil {
			line = conformance.Line{Kind: "snapshot", Cursor: item.Snapshot.Cursor}
			for _, agent := range item.Snapshot.Agents {
				line.Agents = append(line.Agents, agent.AgentID)
			}
		} else {
			line.ID, line.Cursor = item.Event.ID, item.Event.Cursor
			line.Facts, err = json.Marshal(item.Event.Metadata.Facts)
			if err != nil {
				return fmt.Errorf("writing the facts: %w", err)
			}
		}

		if err := put(line); err != nil {
			return err
		}
		if line.ID != "" && line.ID == s.PauseAt {
			<-resumed
		}
	}

	return nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

var output sync.Mutex

func put(line conformance.Line) error {
	output.Lock()
	defer output.Unlock()
	return json.NewEncoder(os.Stdout).Encode(line)
}

// described names an error as the drivers of the other languages do.
func described(err error) *conformance.Error {
	if err == nil {
		return nil
	}

	e := &conformance.Error{Name: "ConnectionLostError", Message: err.Error(), Permanent: trunkline.Permanent(err)}
	var closed *trunkline.CloseError
	if errors.As(err, &closed) {
		e.Name, e.Code = "ClosedError", closed.Code
	}

	var refused *trunkline.RefusedError
	if errors.As(err, &refused) {
		e.Name, e.Status = "RefusedError", refused.Status
		if refused.Step == "login" {
			e.Name = "LoginRefusedError"
		}
	}

	for typed, name := range map[error]string{
		trunkline.ErrGoingAway: "GoingAwayError", trunkline.ErrMisuse: "MisuseError",
		trunkline.ErrServerFault: "ServerFaultError",
		trunkline.ErrRestart:     "RestartError", trunkline.ErrTokenExpired: "TokenExpiredError",
		trunkline.ErrAccessRevoked: "AccessRevokedError",
		trunkline.ErrTooSlow:       "TooSlowError", trunkline.ErrReplaced: "ReplacedError",
		trunkline.ErrPositionGone: "PositionGoneError",
		trunkline.ErrProtocol:     "ProtocolError",
	} {
		if errors.Is(err, typed) {
			e.Name = name
		}
	}

	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		e.Name = "CertificateError"
	}

	return e
}
