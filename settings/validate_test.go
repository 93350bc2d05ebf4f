package settings

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"trunkline/internal/kafka/credentials"
	"trunkline/internal/setting"
	"trunkline/internal/tlsclient"
)

func TestValidateNamesKeyAndRemedy(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Settings)
		want string
	}{
		{"listen", func(s *Settings) { s.Listen = "9443" }, `listen: want host:port or :port, got "9443"`},
		{"port", func(s *Settings) { s.MetricsListen = ":99999" },
			`metrics_listen: want host:port or :port, got ":99999"`},
		{"data dir", func(s *Settings) { s.DataDir = "" }, "data_dir: name a directory"},
		{"no roles", func(s *Settings) { s.Roles = nil }, "roles: name at least one of ingest, "},
		{"unknown role", func(s *Settings) { s.Roles = []string{"api", "boss"} },
			`roles: want ingest, normalizer, fanout, cdrindex, stats, origination, aisession, api, got "boss"`},
		{"drain", func(s *Settings) { s.DrainTimeout = 0 }, "drain_timeout: must be longer than 0, is 0s"},
		{"two master keys", func(s *Settings) { s.MasterKeys.Value, s.MasterKeys.File = "a", "b" },
			"master_key: set here and by master_key_file: unset one"},
		{"level", func(s *Settings) { s.Log.Level = "loud" }, `log.level: want debug, info, warn, error, got "loud"`},
		{"format", func(s *Settings) { s.Log.Format = "xml" }, `log.format: want text, json, got "xml"`},
		{"tls mode", func(s *Settings) { s.TLS.Mode = "on" }, `tls.mode: want auto, files, off, got "on"`},
		{"tls files", func(s *Settings) { s.TLS.Mode = "files" },
			"tls.mode: files needs tls.cert_file and tls.key_file"},
		{"half a certificate", func(s *Settings) { s.TLS.CertFile = "a" }, "tls.key_file: tls.cert_file needs it"},
		{"broker", func(s *Settings) { s.Kafka.Brokers = []string{"kafka"} },
			`kafka.brokers: want host:port, got "kafka"`},
		{"prefix", func(s *Settings) { s.Kafka.TopicPrefix = "a b" }, "kafka.topic_prefix: Kafka allows letters"},
		{"partitions", func(s *Settings) { s.Kafka.Partitions = 1025 }, "kafka.partitions: must be 1 to 1024, is 1025"},
		{"replicas", func(s *Settings) { s.Kafka.ReplicationFactor = -1 }, "kafka.replication_factor: must be 0"},
		{"open embedded broker", func(s *Settings) { s.Kafka.Embedded.Listen = "0.0.0.0:9092" },
			"kafka.embedded_listen: the embedded broker has no authentication"},
		{"embedded and real",
			func(s *Settings) { s.Kafka.Embedded.Listen, s.Kafka.Brokers = "127.0.0.1:9092", []string{"k:9092"} },
			"kafka.embedded_listen: there is no embedded broker"},
		{"small log", func(s *Settings) { s.Kafka.Embedded.MaxBytes = 1 << 20 },
			"kafka.embedded_max_bytes: must be at least 64MiB, is 1MiB"},
		{"tls off with a ca", func(s *Settings) { s.Kafka.TLS.CAFile = "ca" },
			"kafka.tls.enabled: its other settings have no effect"},
		{"half a client certificate",
			func(s *Settings) { s.Redis.TLS = tlsclient.Settings{Enabled: true, KeyFile: "k"} },
			"redis.tls.cert_file: redis.tls.key_file needs it"},
		{"mechanism", func(s *Settings) { s.Kafka.SASL = credentials.Settings{Mechanism: "oauth"} },
			`kafka.sasl.mechanism: want "", plain, scram-sha-256, scram-sha-512, oauthbearer, aws-msk-iam, got "oauth"`},
		{"no user", func(s *Settings) { s.Kafka.SASL = credentials.Settings{Mechanism: "plain", Password: "p"} },
			"kafka.sasl.username: kafka.sasl.mechanism needs it"},
		{"no mechanism", func(s *Settings) { s.Kafka.SASL.Password = "p" },
			"kafka.sasl.mechanism: kafka.sasl.username and"},
		{"redis", func(s *Settings) { s.Redis.Address = "redis://x" },
			`redis.address: want host:port, got "redis://x"`},
		{"redis with a password", func(s *Settings) { s.Redis.Address = "redis://:secret@x:1" },
			`redis.address: want host:port, got ********`},
		{"redis db", func(s *Settings) { s.Redis.DB = -1 }, "redis.db: must not be negative, is -1"},
		{"database", func(s *Settings) { s.Database.URL = "mysql://u:hush@h/d" }, "database.url: want postgres://"},
		{"recordings", func(s *Settings) { s.Recordings.URL = "s3://k:hush@h" },
			"recordings.url: want s3://KEY:SECRET@host:port/bucket"},
		{"driver", func(s *Settings) { s.Origination.Driver = "pbx" },
			`origination.driver: want "", auto, sip, asterisk, freeswitch, kazoo, simulator, got "pbx"`},
		{"pattern", func(s *Settings) { s.Origination.Deny = []string{"+43"} },
			`origination.deny: "+43" is not a regular expression`},
		{"account's pattern", func(s *Settings) { s.Origination.AccountAllow = []string{"^1"} },
			`origination.account_allow: "^1" is not written ACCOUNT=PATTERN`},
		{"country", func(s *Settings) { s.Numbers.Country = "Germany" },
			`numbers.country: "Germany" is no country code of two capital letters (ISO 3166), as DE`},
		{"an account's country", func(s *Settings) { s.Numbers.AccountCountry = []string{"acme"} },
			`numbers.account_country: "acme" is not written ACCOUNT=COUNTRY`},
		{"user's calls", func(s *Settings) { s.Origination.UserPerMinute = -1 },
			"origination.user_per_minute: must not be negative, is -1"},
		{"user's calls at once", func(s *Settings) { s.Origination.UserCalls = -1 },
			"origination.user_calls: must not be negative, is -1"},
		{"international", func(s *Settings) { s.Origination.International = "ask" },
			`origination.international: want "", deny, allow, got "ask"`},
		{"premium", func(s *Settings) { s.Origination.Premium = []string{"("} },
			`origination.premium: "(" is not a regular expression`},
		{"portal password", func(s *Settings) { s.Auth.SIPPortalPassword = "perhaps" },
			`auth.sip_portal_password: want refuse, warn, allow, got "perhaps"`},
		{"digest", func(s *Settings) { s.SIP.Server.DigestAlgorithms = []string{"sha1"} },
			`sip.digest_algorithms: want md5, sha-256, got "sha1"`},
		{"open calls", func(s *Settings) { s.Origination.MaxCalls = 0 },
			"origination.max_calls: must be at least 1, is 0"},
		{"retention", func(s *Settings) { s.Origination.Retention = 1 },
			"origination.retention: must be at least 1m, is 1ns"},
		{"asterisk without a secret", func(s *Settings) {
			s.Origination.Driver = "asterisk"
			s.Origination.Asterisk.Address = "pbx:5038"
			s.Origination.Asterisk.Username = "trunkline"
		}, "origination.asterisk.secret: origination.driver asterisk needs it"},
		{"kazoo without a key",
			func(s *Settings) { s.Origination.Driver, s.Origination.Kazoo.URL = "kazoo", "https://k:8443" },
			"origination.kazoo.api_key: origination.driver kazoo needs it"},
		{"kazoo's accounts", func(s *Settings) { s.Origination.Kazoo.Accounts = []string{"a="} },
			`origination.kazoo.accounts: "a=" is not written ACCOUNT=KAZOO_ACCOUNT`},
		{"access", func(s *Settings) { s.Auth.AccessTTL = -1 }, "auth.access_ttl: must be 1s to 720h, is -1ns"},
		{"events", func(s *Settings) { s.Auth.EventsTTL = 0 }, "auth.events_ttl: must be 1s to 720h, is 0s"},
		{"refresh", func(s *Settings) { s.Auth.RefreshTTL = time.Minute },
			"auth.refresh_ttl: must not be shorter than auth.access_ttl (1h), is 1m"},
		{"in flight", func(s *Settings) { s.Ingest.MaxInFlightBytes = 1 },
			"ingest.max_in_flight_bytes: must be at least 64MiB, what one body can need, is 1"},
		{"bodies", func(s *Settings) { s.Ingest.MaxBodiesPerCaller = 0 },
			"ingest.max_bodies_per_caller: must be at least 1, is 0"},
		{"produce", func(s *Settings) { s.Ingest.ProduceTimeout = 0 }, "ingest.produce_timeout: must be longer than 0"},
		{"ping", func(s *Settings) { s.Fanout.PingInterval = 0 }, "fanout.ping_interval: must be longer than 0"},
		{"idle", func(s *Settings) { s.Fanout.IdleTimeout = 20 * time.Second },
			"fanout.idle_timeout: must be longer than fanout.ping_interval (25s), is 20s"},
		{"queue", func(s *Settings) { s.Fanout.QueueBytes = 1 }, "fanout.queue_bytes: must be at least 4KiB, is 1"},
		{"node queue", func(s *Settings) { s.Fanout.NodeQueueBytes = 1 << 10 },
			"fanout.node_queue_bytes: must not be less than fanout.queue_bytes (1MiB), is 1KiB"},
		{"gather", func(s *Settings) { s.Fanout.GatherWindow = time.Minute },
			"fanout.gather_window: must be 0 to 1s, is 1m"},
		{"origin", func(s *Settings) { s.API.AllowedOrigins = []string{"example.com"} },
			`allowed_origins: want origins such as https://board.example.com, or *, got "example.com"`},
		{"connections", func(s *Settings) { s.Fanout.MaxConnectionsPerUser = -2 },
			"fanout.max_connections_per_user: must not be negative, is -2"},
		{"on limit", func(s *Settings) { s.Fanout.OnLimit = "drop" },
			`fanout.on_limit: want refuse, replace, got "drop"`},
		{"mapped network", func(s *Settings) {
			s.AIProvider.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
		}, "ai_provider.allow_networks: write ::ffff:10.0.0.0/104 as an IPv4 network"},
		{"sessions", func(s *Settings) { s.AISession.Sessions.MaxPerAccount = -1 },
			"aisession.max_per_account: must not be negative, is -1"},
		{"provider away", func(s *Settings) { s.AISession.Sessions.GiveUp = 0 },
			"aisession.give_up: must be longer than 0, is 0s"},
		{"provider silent", func(s *Settings) { s.AISession.Sessions.SilenceTimeout = -1 },
			"aisession.silence_timeout: must not be negative"},
		{"playout", func(s *Settings) { s.AISession.Sessions.PlayoutLimit = 2 * time.Hour },
			"aisession.playout_limit: must be 1s to 1h, is 2h"},
		{"playout lead", func(s *Settings) { s.AISession.Sessions.PlayoutLead = 2 * time.Second },
			"aisession.playout_lead: must be at most 1s, is 2s"},
		{"audiosocket", func(s *Settings) { s.AISession.AudioSocket.Listen = "9092" },
			`aisession.audiosocket_listen: want host:port or :port, got "9092"`},
		{"audiosocket's connections", func(s *Settings) { s.AISession.AudioSocket.MaxConnections = 0 },
			"aisession.audiosocket_connections: must be at least 1, is 0"},
		{"sample", func(s *Settings) { s.Tracing.Sample = 1.5 }, "tracing.sample: must be 0 to 1, is 1.5"},
		{"no sample", func(s *Settings) { s.Tracing.Sample = math.NaN() }, "tracing.sample: must be 0 to 1, is NaN"},
		{"collector", func(s *Settings) { s.Tracing.Endpoint = "collector:4318" },
			`tracing.endpoint: want an address such as http://collector:4318, got "collector:4318"`},
		{"collector's password", func(s *Settings) { s.Tracing.Endpoint = "https://u:hush@c" },
			"tracing.endpoint: it has a user or password in it: put them in tracing.headers"},
		{"collector's query", func(s *Settings) { s.Tracing.Endpoint = "https://c/?x" },
			"tracing.endpoint: it can have no query"},
		{"headers for nobody", func(s *Settings) { s.Tracing.Headers = "a=hush" },
			"tracing.endpoint: tracing.headers has no effect without it"},
		{"headers", func(s *Settings) { s.Tracing.Endpoint, s.Tracing.Headers = "http://c", "a=b,hush" },
			"tracing.headers: header 2 of it is not written NAME=VALUE"},
		{"a header's line", func(s *Settings) { s.Tracing.Endpoint, s.Tracing.Headers = "http://c", "a=hush%0Ab" },
			"tracing.headers: header 1 of it is not written"},
		{"a header twice", func(s *Settings) { s.Tracing.Endpoint, s.Tracing.Headers = "http://c", "a=hush,A=hush" },
			"tracing.headers: it has A twice"},
		{"spread", func(s *Settings) { s.Fanout.DrainSpread = -1 }, "fanout.drain_spread: must not be negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Default()
			c.set(s)
			var problems setting.Problems
			errors.As(setting.Validate("", s), &problems)

			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
				t.Errorf("got %v, want %s", problems, c.want)
			}
			if strings.Contains(problems.Error(), "hush") {
				t.Error("a secret is shown")
			}
		})
	}
}
