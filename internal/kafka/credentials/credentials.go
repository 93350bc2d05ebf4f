// Package credentials provides the SASL mechanisms for Kafka, with passwords and
// tokens that are reloaded while the process runs. It has no goroutines; a token
// request lasts at most tokenRequestTimeout.
package credentials

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Login returns the mechanism for one authentication, with the current credentials.
type Login func(context.Context) (sasl.Mechanism, error)

// tokenRequestTimeout bounds a token request.
const tokenRequestTimeout = 5 * time.Second

// New returns the login of the settings, nil if no mechanism is configured. Its error names the setting that
// cannot be used.
func New(ctx context.Context, s Settings, log *slog.Logger) (Login, error) {
	switch s.Mechanism {
	case "":
		return nil, nil
	case "oauthbearer":
		return newOAuthLogin(s.OAuth, log)
	case "aws-msk-iam":
		return newMSKLogin(ctx, s.AWSRegion, log)
	}

	// A file that cannot be read is known at start, and not only at the first connection.
	_, err := s.currentPassword()
	if err != nil {
		return nil, err
	}

	return func(context.Context) (sasl.Mechanism, error) {
		password, err := s.currentPassword()
		if err != nil {
			return nil, err
		}

		switch s.Mechanism {
		case "plain":
			return plain.Mechanism{Username: s.Username, Password: password}, nil
		case "scram-sha-256":
			return scram.Mechanism(scram.SHA256, s.Username, password)
		default:
			return scram.Mechanism(scram.SHA512, s.Username, password)
		}
	}, nil
}

// currentPassword reads PasswordFile at each call.
func (s Settings) currentPassword() (string, error) {
	if s.PasswordFile == "" {
		return string(s.Password), nil
	}
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
