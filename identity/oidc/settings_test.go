package oidc

import (
	"strings"
	"testing"

	"trunkline/internal/setting"
)

func TestSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"": {},
		"auth.oidc.issuer: auth.oidc.client_id needs it": {ClientID: "x"},
		"auth.oidc.issuer: want an https URL": {Issuer: "http://example.com", ClientID: "x",
			AccountClaim: "a"},
		"auth.oidc.client_id: auth.oidc.issuer needs it": {Issuer: "https://example.com", AccountClaim: "a"},
		"auth.oidc.account_claim: auth.oidc":             {Issuer: "http://127.0.0.1:1", ClientID: "x"},
		"auth.oidc.redirect_url: want https://HOST/auth": {Issuer: "https://example.com", ClientID: "x",
			AccountClaim: "a", RedirectURL: "https://example.com/"},
	} {
		err := setting.Validate("auth.oidc", s)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}
