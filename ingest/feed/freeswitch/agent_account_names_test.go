package freeswitch

import "testing"

func TestContactDomain(t *testing.T) {
	for contact, want := range map[string]string{
		"user/1001@acme.example.com":                          "acme.example.com",
		"[leg_timeout=10]user/1001@acme.example.com|user/2@b": "acme.example.com",
		"{domain_name=acme.example.com,a=b}loopback/1":        "acme.example.com",
		"{a=b,domain_name=acme}user/1@other":                  "acme",
		"sofia/gateway/x/123":                                 "", "user/1001": "", "": "", "domain_name=": "",
	} {
		if got := contactDomain(contact); got != want {
			t.Errorf("%q has the domain %q, want %q", contact, got, want)
		}
	}
}
