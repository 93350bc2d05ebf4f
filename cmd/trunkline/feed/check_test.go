package feed

import (
	"strings"
	"testing"

	"trunkline/ingest/feed"
)

type directory map[string]string

func (d directory) Resolve(ref string) (string, bool)     { id, ok := d[ref]; return id, ok }
func (d directory) ByDomain(domain string) (string, bool) { return d.Resolve(domain) }

func TestAccountsThatDoNotExistAreReported(t *testing.T) {
	known := directory{"acme": "a1"}
	for _, cfg := range []feed.Config{
		{}, {Account: "acme"}, {Accounts: []feed.AccountRule{{Match: "*", Account: "acme"}}},
	} {
		if err := checkAccounts(cfg, known); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []feed.Config{
		{Account: "nosuch"}, {Accounts: []feed.AccountRule{{Match: "a", Account: "acme"}, {Match: "b", Account: "nosuch"}}},
	} {
		if err := checkAccounts(cfg, known); err == nil || !strings.Contains(err.Error(), `there is no account "nosuch"`) {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}
