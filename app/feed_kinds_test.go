package app

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/ingest/feed"
	"trunkline/internal/panics"
	"trunkline/telephony/ami"
)

// Every kind of the settings is in the program, any number of them beside each other
// and beside the origination driver of the same platform.
func TestFeedsOfEveryKindAreBuilt(t *testing.T) {
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	recoverer := panics.New(registry, log)
	if _, err := ami.New(ami.Config{Address: "127.0.0.1:1", Username: "u", Secret: "s"},
		ami.Deps{Log: log, Metrics: registry, Panics: recoverer}); err != nil {
		t.Fatal(err) // the driver's
	}

	for _, cfg := range []feed.Config{
		{Kind: feed.KindFreeSWITCH, Address: "127.0.0.1:1", Password: "p"},
		{Kind: feed.KindAsterisk, Address: "127.0.0.1:1", Username: "u", Secret: "s"},
		{Kind: feed.KindKazoo, URL: "amqp://u:p@127.0.0.1:1/"},
	} {
		for _, name := range []string{"one", "two"} {
			cfg.Name, cfg.Redundancy, cfg.TimeZone = name, 1, "UTC"
			if _, err := FeedPlatform(nil)(cfg,
				feed.Deps{Accounts: feed.NewAccounts(cfg, FeedDirectory{}), Metrics: registry, Log: log,
					Panics: recoverer}); err != nil {
				t.Errorf("feed %s of kind %s: %v", name, cfg.Kind, err)
			}
		}
	}
}
