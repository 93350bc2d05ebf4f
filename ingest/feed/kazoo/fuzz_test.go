package kazoo

import (
	"encoding/json"
	"log/slog"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/ingest/feed"
)

// FuzzMessage reads an event and a call record that may be of the same call.
func FuzzMessage(f *testing.F) {
	record := report("c1")
	f.Add([]byte(callEvent("CHANNEL_CREATE", "c1", map[string]any{"Origination-Call-ID": "o1"})), []byte(record), false)
	f.Add([]byte(callEvent("CHANNEL_DESTROY", "c1", map[string]any{"Origination-Call-ID": "o1"})), []byte(record), true)
	f.Add([]byte(status("acme", "a1", "paused")), []byte(" {}"), false)
	f.Add([]byte(`not JSON`), []byte(`{"Event-Category":"something"}`), false)
	var cfg feed.Config
	cfg.SetDefaults()
	cfg.Name, cfg.Kind, cfg.URL = "fuzz", feed.KindKazoo, "amqp://127.0.0.1"

	f.Fuzz(func(t *testing.T, first, second []byte, compressed bool) {
		p, err := newPlatform(cfg, feed.Deps{Accounts: accountsByName{"acme": "acme"},
			Log: slog.New(slog.DiscardHandler)}, nil)
		if err != nil {
			t.Fatal(err)
		}

		for tag, body := range [][]byte{first, second} {
			delivery := amqp.Delivery{DeliveryTag: uint64(tag) + 1, Body: body}
			if compressed {
				delivery.ContentEncoding = "gzip"
			}

			events := p.appendEvents(t.Context(), nil, delivery)
			if len(events) == 0 || events[len(events)-1].Delivery != delivery.DeliveryTag {
				t.Fatalf("%d events, the last one does not acknowledge the message", len(events))
			}

			for _, e := range events {
				if json.Valid(body) && !json.Valid(e.Value) {
					t.Errorf("%q became %q", body, e.Value)
				}
			}
		}
	})
}
