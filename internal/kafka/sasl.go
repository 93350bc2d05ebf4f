package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// login returns the mechanism for one authentication, with the credentials of
// that moment.
type login func(context.Context) (sasl.Mechanism, error)

// newLogin returns nil where no mechanism is set. Its error says which setting
// cannot be used.
func newLogin(ctx context.Context, s SASL, log *slog.Logger) (login, error) {
	switch s.Mechanism {
	case "":
		return nil, nil
	case "oauthbearer":
		return newOAuthLogin(s.OAuth, log)
	case "aws-msk-iam":
		return newMSKLogin(ctx, s.AWSRegion, log)
	}
	if _, err := s.currentPassword(); err != nil {
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

// currentPassword reads PasswordFile anew at each call.
func (s SASL) currentPassword() (string, error) {
	if s.PasswordFile == "" {
		return string(s.Password), nil
	}
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
