package kafka

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/internal/kafka/credentials"
	"trunkline/internal/testservice"
	"trunkline/internal/tlsclient"
)

// TestManagedKafka connects to an Apache Kafka as to managed clusters:
// with a client certificate, and with tokens that it verifies.
func TestManagedKafka(t *testing.T) {
	t.Parallel()
	kafka := testservice.OwnManagedKafka(t)
	refused := func(t *testing.T, settings Settings) {
		t.Helper()
		if err := openCluster(t, settings).Ping(t.Context()); err == nil {
			t.Error("let in")
		}
	}

	t.Run("with a client certificate", func(t *testing.T) {
		settings := DefaultSettings(kafka.Mutual)
		settings.TopicPrefix = "mutual."
		settings.TLS = tlsclient.Settings{Enabled: true, CAFile: kafka.CA.File}
		settings.TLS.CertFile, settings.TLS.KeyFile = kafka.CA.Pair(t, "client")
		useEveryWay(t, Config{Settings: settings})
		settings.TLS.CertFile, settings.TLS.KeyFile = testservice.NewCA(t).Pair(t, "stranger")
		refused(t, settings)
		settings.TLS.CertFile, settings.TLS.KeyFile = "", ""
		refused(t, settings)
	})

	t.Run("with tokens", func(t *testing.T) {
		settings := DefaultSettings(kafka.Token)
		settings.TopicPrefix = "token."
		settings.TLS = tlsclient.Settings{Enabled: true, CAFile: kafka.CA.File}

		from := func(token string) Settings {
			settings.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenFile: tokenFile(t, token)}}
			return settings
		}

		signed, other := kafka.Sign(t, "trunkline", time.Hour), kafka.Sign(t, "another", time.Hour)
		useEveryWay(t, Config{Settings: from(signed)})
		refused(t, from(kafka.Sign(t, "trunkline", -time.Hour)))
		parts, otherParts := strings.Split(signed, "."), strings.Split(other, ".")
		refused(t, from(parts[0]+"."+otherParts[1]+"."+parts[2]))
	})

	t.Run("with tokens that end soon", func(t *testing.T) {
		const life = 4 * time.Second
		var issued atomic.Int32
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			issued.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"access_token": kafka.Sign(t, "trunkline", life), "token_type": "Bearer",
				"expires_in": int(life.Seconds()),
			})
		}))
		defer endpoint.Close()

		settings := DefaultSettings(kafka.Token)
		settings.TopicPrefix = "token."
		settings.TLS = tlsclient.Settings{Enabled: true, CAFile: kafka.CA.File}
		settings.SASL = credentials.Settings{Mechanism: "oauthbearer",
			OAuth: credentials.OAuth{TokenURL: endpoint.URL, ClientID: "trunkline", ClientSecret: "secret"}}
		p := openCluster(t, settings).NewProducer(ProducerConfig{DeliveryTimeout: 2 * time.Minute})

		for issued.Load() < 3 {
			if err := p.Produce(t.Context(), Record{Topic: "t", Value: []byte("v")}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}

		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
