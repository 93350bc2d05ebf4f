package aisession

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/fault"
)

// CallUpdate is a REST request of a bot written for Twilio: to end its call, or to transfer it.
type CallUpdate struct {
	CallSID      string `json:"call_sid"`     // of the session's start message
	SecretSHA256 string `json:"secret"`       // hexadecimal, of the provider's secret
	Destination  string `json:"to,omitempty"` // "" hangs up
}

// SecretSHA256 returns a secret as CallUpdate has it.
func SecretSHA256(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// UpdateCall carries out an update of the call of a session on any node. It returns when the update has begun. The
// error is fault.KindNotFound if no such session runs, and fault.KindUnauthenticated for another secret.
func (s *Service) UpdateCall(ctx context.Context, u CallUpdate) error {
	err := s.ApplyCallUpdate(ctx, u)
	if fault.KindOf(err) != fault.KindNotFound || s.deps.CallNodes == nil {
		return err
	}
	return s.deps.CallNodes.Ask(ctx, u, err)
}

// ApplyCallUpdate is UpdateCall for the sessions of this node.
func (s *Service) ApplyCallUpdate(_ context.Context, u CallUpdate) error {
	session := s.findByCallSID(u.CallSID)
	if session == nil {
		return fault.NotFound("Call not found")
	}

	secret := session.request.Provider.Secret
	if secret == "" || subtle.ConstantTimeCompare([]byte(SecretSHA256(secret)), []byte(u.SecretSHA256)) != 1 {
		return fault.Unauthenticated("The password is not the provider's secret")
	}
	if u.Destination != "" {
		session.queueRequest(providerRequest{destination: u.Destination})
		return nil
	}

	session.end(Ending{Reason: ProviderHungUp, Cause: NormalizeHangupCause("")})
	return nil
}

func (s *Service) findByCallSID(callSID string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, session := range s.sessions {
		if session.protocol.Name == dialect.Twilio && dialect.TwilioCallSID(id) == callSID {
			return session
		}
	}
	return nil
}
