package kazoo

import (
	"log/slog"
	"net/http"
	"testing"
)

func TestConfigIsChecked(t *testing.T) {
	for name, settings := range map[string]Settings{
		"no url": {APIKey: "k"}, "no scheme": {URL: "kazoo:8443", APIKey: "k"},
		"a password":                 {URL: "https://u:p@kazoo", APIKey: "k"},
		"no key":                     {URL: "https://kazoo"},
		"an account without Kazoo's": {URL: "https://kazoo", APIKey: "k", Accounts: []string{"demo"}},
	} {
		if _, err := New(Config{Settings: settings}, http.DefaultClient, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
