package oidc

import (
	"testing"

	"trunkline/internal/fault"
)

func TestTheCodeFlow(t *testing.T) {
	e := newEnv(t, nil)
	flow, address, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	back := e.provider.Authorize(t, address, nil)
	if back.Query().Get("state") != flow.State || back.Path != CallbackPath {
		t.Errorf("back at %s", back)
	}

	code := back.Query().Get("code")
	id, err := e.Finish(t.Context(), flow, code)
	if err != nil || id.Subject != "u-1" {
		t.Errorf("%+v, %v", id, err)
	}

	_, err = e.Finish(t.Context(), flow, code)
	wantRefusal(t, "the code again", err, fault.KindUnauthenticated, "wrong_code")

	second, address, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	stolen := e.provider.Authorize(t, address, nil).Query().Get("code")
	_, err = e.Finish(t.Context(), flow, stolen) // into another browser's login
	wantRefusal(t, "another login's code", err, fault.KindUnauthenticated, "wrong_code")

	for name, nonce := range map[string]any{"another nonce": "x", "no nonce": nil} {
		code = e.provider.Authorize(t, address, map[string]any{"nonce": nonce}).Query().Get("code")
		_, err = e.Finish(t.Context(), second, code)
		wantRefusal(t, name, err, fault.KindUnauthenticated, "wrong_nonce")
	}

	e.provider.SetUnavailable(true)
	_, err = e.Finish(t.Context(), second, "code")
	if fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("a provider that is away: %v", err)
	}
}
