package aisession

import (
	"testing"

	"trunkline/internal/aiprotocol"
)

// FuzzProviderMessage: the session continues after any message of a provider.
func FuzzProviderMessage(f *testing.F) {
	f.Add([]byte(`{"event":"media","media":{"payload":"AAAA"}}`))
	f.Add([]byte(`{"event":"clear","clear":{}}`))
	f.Add([]byte(`{"event":"mark","mark":{"name":"a"}}`))
	f.Add([]byte(`{"event":"transfer","transfer":{"destination":"1"}}`))
	f.Add([]byte(`{"event":"dtmf","dtmf":{"digit":"5","duration":100}}`))
	f.Add([]byte(`{"event":"hangup","hangup":{"reason":"X"}}`))

	service := newIdleService(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		session := newIdleSession(t, service, aiprotocol.ULaw)
		session.request.Provider.Extensions = true
		idleConnection(session).handler.handleText(message)
		session.call = silent{}

		for range 3 {
			session.tick(session.openedAt, nil)
		}
	})
}
