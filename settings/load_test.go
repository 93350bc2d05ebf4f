package settings

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"trunkline/ingest/feed"
	"trunkline/internal/setting"
)

func writeTempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parsedFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestDefaultsAreValid(t *testing.T) {
	s, unknown, err := Load(Source{})
	if err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	if !reflect.DeepEqual(s, Default()) {
		t.Errorf("without a source: %+v", s)
	}
}

func TestLaterSourcesWin(t *testing.T) {
	file := writeTempFile(t, "t.yaml", "listen: \":1\"\nmetrics_listen: \":1\"\nlog:\n  level: warn\ndrain_timeout: 1s\n")
	s, _, err := Load(Source{
		File:  file,
		Env:   []string{"TRUNKLINE_LISTEN=:2", "TRUNKLINE_METRICS_LISTEN=:2", "TRUNKLINE_DRAIN_TIMEOUT="},
		Flags: parsedFlags(t, "--listen", ":3"),
	})
	if err != nil {
		t.Fatal(err)
	}

	got := []string{s.Listen, s.MetricsListen, s.Log.Level, s.DrainTimeout.String(), s.DataDir}
	want := []string{":3", ":2", "warn", "1s", "data"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryKindOfValueFromEverySource(t *testing.T) {
	want := Default()
	want.Roles = []string{"ingest", "api"}
	want.API.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"),
		netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8::7/128")}
	want.DrainTimeout = 90 * time.Second
	want.Kafka.Partitions = 12
	want.Kafka.CreateTopics = false
	want.Kafka.Embedded.MaxBytes = 64 << 20
	want.Database.URL = "postgres://u:p@h/d"
	want.DemoPassword = "geheim, geheim"
	want.Tracing.Sample = 0.25
	sources := map[string]Source{
		"file": {File: writeTempFile(t, "t.yaml", `
roles: [ingest, api]
trusted_proxies:
  - 10.0.0.0/8
  - fd00::/8
  - 192.0.2.7
  - 2001:db8::7
drain_timeout: 90s
demo_password: "geheim, geheim"
tracing:
  sample: 0.25
kafka:
  partitions: 12
  create_topics: false
  embedded_max_bytes: 64MiB
redis:
database:
  url: postgres://u:p@h/d
`)},
		"environment": {Env: []string{
			"TRUNKLINE_ROLES=ingest, api,", "TRUNKLINE_TRUSTED_PROXIES=10.0.0.0/8,fd00::/8,192.0.2.7,2001:db8::7",
			"TRUNKLINE_DRAIN_TIMEOUT=1m30s", "TRUNKLINE_KAFKA_PARTITIONS=12", "TRUNKLINE_KAFKA_CREATE_TOPICS=false",
			"TRUNKLINE_KAFKA_EMBEDDED_MAX_BYTES=67108864", "TRUNKLINE_DATABASE_URL=postgres://u:p@h/d",
			"TRUNKLINE_DEMO_PASSWORD=geheim, geheim", "TRUNKLINE_TRACING_SAMPLE=.25",
		}},
		"flags": {Flags: parsedFlags(t, "--roles", "ingest", "--roles=api", "--trusted-proxies",
			"10.0.0.0/8,fd00::/8,192.0.2.7,2001:db8::7",
			"--drain_timeout", "90s", "--kafka.partitions=12", "--kafka.create-topics=false",
			"--kafka.embedded-max_bytes", "65536KiB", "--database.url", "postgres://u:p@h/d",
			"--demo_password", "geheim, geheim", "--tracing.sample", "0.25")},
	}

	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			got, _, err := Load(source)
			if err != nil {
				t.Fatal(err)
			}

			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestFileProblemsNameTheLine(t *testing.T) {
	const name = "t.yaml"
	for text, want := range map[string]string{
		"listn: x":                            ":1: listn: unknown key",
		"log:\n  levl: info":                  ":2: log.levl: unknown key",
		"fanout:\n  allowed_origins: [\"*\"]": ":2: fanout.allowed_origins: is called allowed_origins",
		"\n\nlisten: 9443":                    ":3: listen: want text, got a number: put it in quotes",
		"listen: [a]":                         ":1: listen: want text, got a list",
		"listen:":                             ":1: listen: want text, got nothing",
		"listen: a\nlisten: b":                ":2: listen: set before, on line 1",
		"kafka: 9092":                         ":1: kafka: want keys with values under it, got a number",
		"- a":                                 ":1: want keys with values under it, got a list",
		"kafka:\n  brokers: a:9092":           ":2: kafka.brokers: want a list such as [a, b], got text",
		"kafka:\n  brokers:\n  - {a: b}":      ":3: kafka.brokers: want text, got keys with values",
		"kafka:\n  partitions: many":          ":2: kafka.partitions: want a whole number, got text",
		"kafka:\n  partitions: 1_0":           ":2: kafka.partitions: want a whole number",
		"kafka:\n  create_topics: yes":        ":2: kafka.create_topics: want true or false, got text",
		"tracing:\n  sample: often":           ":2: tracing.sample: want a number, got text",
		"drain_timeout: 20":                   ":1: drain_timeout: want text, got a number: put it in quotes",
		"drain_timeout: soon":                 ":1: drain_timeout: want a duration such as 20s, 5m or 24h",
		"ingest:\n  max_in_flight_bytes: 1TB": ":2: ingest.max_in_flight_bytes: want a size such as 1048576 or 512MiB",
		"trusted_proxies: [10.0.0]":           ":1: trusted_proxies: want addresses or networks such as 10.0.0.1, 10.0.0.0/8 or fd00::/8",
		"a: &a b\nlisten: *a":                 ":2: listen: want text, got an alias",
		"listen: a\n---\nlisten: b":           ": want one YAML document, there is another behind it",
		"listen: 'a":                          ": yaml: ",
		"drain_timeout: 2026-01-01":           ":1: drain_timeout: want text, got a date: put it in quotes",
	} {
		t.Run(text, func(t *testing.T) {
			file := writeTempFile(t, name, text)
			_, _, err := Load(Source{File: file})
			if err == nil || !strings.Contains(err.Error(), file+want) {
				t.Errorf("got %v, want …%s%s", err, name, want)
			}
		})
	}
}

// A setting by the name that it had is refused in the environment too, where unknown names are not.
func TestAFormerNameOfASettingIsRefused(t *testing.T) {
	_, _, err := Load(Source{Env: []string{"TRUNKLINE_FANOUT_ALLOWED_ORIGINS=https://board.example.com"}})
	if err == nil || !strings.Contains(err.Error(), "is called allowed_origins") {
		t.Errorf("got %v", err)
	}
	if _, unknown, err := Load(Source{Env: []string{"TRUNKLINE_ALLOWED_ORIGINS=*"}}); err != nil || len(unknown) > 0 {
		t.Errorf("its name: %v, %v", unknown, err)
	}
}

func TestFileProblemsComeAllAtOnce(t *testing.T) {
	_, _, err := Load(Source{
		File: writeTempFile(t, "t.yaml", "listn: x\ndrain_timeout: soon\n"),
		Env:  []string{"TRUNKLINE_KAFKA_PARTITIONS=x"},
	})
	var problems setting.Problems
	if !errors.As(err, &problems) || len(problems) != 3 {
		t.Errorf("got %v, want three problems", err)
	}
}

func TestFeedsAreAListOfEntriesFromEverySource(t *testing.T) {
	secret := writeTempFile(t, "secret", "hush\n")
	json := `[{"name": "pbx", "kind": "freeswitch", "address": "h:8021", "password_file": "` + secret +
		`", "accounts": [{"match": "*.example", "account": "a"}],
		"tls": {"enabled": true}, "events": ["HEARTBEAT", "CUSTOM callcenter::info"]},
		{"name": "q", "kind": "kazoo", "url": "amqp://u:hush@h:5672/", "redundancy": 1}]`
	var first, second feed.Config
	first.SetDefaults()
	second.SetDefaults()
	first.Name, first.Kind, first.Address, first.Password = "pbx", "freeswitch", "h:8021", "hush"
	first.Accounts, first.TLS.Enabled, first.Events = []feed.AccountRule{{Match: "*.example",
		Account: "a"}}, true, []string{"HEARTBEAT", "CUSTOM callcenter::info"}
	second.Name, second.Kind, second.URL = "q", "kazoo", "amqp://u:hush@h:5672/"
	yaml := `
feeds:
  - name: pbx
    kind: freeswitch
    address: h:8021
    password_file: ` + secret + `
    accounts:
      - {match: "*.example", account: a}
    tls: {enabled: true}
    events: [HEARTBEAT, "CUSTOM callcenter::info"]
  - {name: q, kind: kazoo, url: "amqp://u:hush@h:5672/"}
`

	other := writeTempFile(t, "other.yaml", "feeds:\n  - {name: x, kind: asterisk, address: h:5038, username: u, secret: s}\n")
	for name, source := range map[string]Source{
		"file":                                {File: writeTempFile(t, "t.yaml", yaml)},
		"environment, in place of the file's": {File: other, Env: []string{"TRUNKLINE_FEEDS=" + json}},
		"file of the environment":             {Env: []string{"TRUNKLINE_FEEDS_FILE=" + writeTempFile(t, "feeds.json", json)}},
		"flag, in place of the environment's": {Env: []string{`TRUNKLINE_FEEDS=[]`},
			Flags: parsedFlags(t, "--feeds", json)},
	} {
		t.Run(name, func(t *testing.T) {
			s, unknown, err := Load(source)
			if err != nil || len(unknown) > 0 {
				t.Fatal(unknown, err)
			}

			if want := []feed.Config{first, second}; !reflect.DeepEqual(s.Feeds, want) {
				t.Errorf("got  %+v\nwant %+v", s.Feeds, want)
			}

			var printed strings.Builder
			if err := s.Print(&printed); err != nil || strings.Contains(printed.String(), "hush") {
				t.Errorf("%v, or a secret is shown: %s", err, printed.String())
			}

			again := Default()
			if problems := newTree(again).readYAML("printed", []byte(printed.String())); len(problems) > 0 ||
				len(again.Feeds) != 2 || again.Feeds[0].Accounts[0].Match != "*.example" {
				t.Errorf("%v: %+v", problems, again.Feeds)
			}
		})
	}
}

func TestFeedProblemsNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`[{"naem": "x"}]`:                 "TRUNKLINE_FEEDS:1: feeds[0].naem: unknown key",
		`{"name": "x"}`:                   "TRUNKLINE_FEEDS:1: feeds: want a list of entries with keys, got keys with values",
		`["x"]`:                           "TRUNKLINE_FEEDS:1: feeds[0]: want keys with values under it, got text",
		`[{"name": 1}]`:                   "TRUNKLINE_FEEDS:1: feeds[0].name: want text, got a number",
		`[{"accounts": [{"mach": "x"}]}]`: "TRUNKLINE_FEEDS:1: feeds[0].accounts[0].mach: unknown key",
		`[{"password": "a", "password_file": "/nowhere"}]`:                                                       "TRUNKLINE_FEEDS:1: feeds[0].password_file: feeds[0].password is set too: unset one",
		`[{"password_file": "load_test.go", "password": "a"}]`:                                                   "TRUNKLINE_FEEDS:1: feeds[0].password: feeds[0].password_file is set too: unset one",
		`[{"secret_file": "/nowhere"}]`:                                                                          "TRUNKLINE_FEEDS:1: feeds[0].secret_file: cannot be read",
		`[{"name_file": "/nowhere"}]`:                                                                            "TRUNKLINE_FEEDS:1: feeds[0].name_file: unknown key",
		`[{"name": "x", "kind": "sip"}]`:                                                                         `feeds[0].kind: want freeswitch, asterisk, kazoo, got "sip"`,
		`[{"name": "x", "kind": "kazoo"}]`:                                                                       "feeds[0].url: a feed of kind kazoo needs it",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h", "password": "p"}]`:                                   "feeds[0].password: a feed of kind kazoo does not have it",
		`[{"name": "../x", "kind": "kazoo", "url": "amqp://h"}]`:                                                 "feeds[0].name: want 1 to 64 of letters",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h", "redundancy": 2}]`:                                   "feeds[0].redundancy: kazoo needs 1",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h", "redundancy": 3}]`:                                   "feeds[0].redundancy: must be 1 or 2, is 3",
		`[{"name": "x", "kind": "kazoo", "url": "http://h"}]`:                                                    "feeds[0].url: want amqp://",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h", "sync_accounts": true}]`:                             "feeds[0].crossbar_url: feeds[0].sync_accounts needs it",
		`[{"name": "x", "kind": "freeswitch", "address": "h", "password": "p"}]`:                                 `feeds[0].address: want host:port, got "h"`,
		`[{"name": "x", "kind": "freeswitch", "address": "h:1", "password": "p", "time_zone": "Europe/Berlin"}]`: "feeds[0].time_zone: a feed of kind freeswitch does not have it",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h", "listen_beep": true}]`:                               "feeds[0].listen_beep: a feed of kind kazoo does not have it",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h", "listen_by": "x"}]`:                                  "feeds[0].listen_by: a feed of kind kazoo does not have it",
		`[{"name": "x", "kind": "freeswitch", "address": "h:1", "password": "p", "listen_by": "uuid_audio_stream {call} start wss://t/{provider} stereo {metadata}"}]`: "feeds[0].listen_by: want the sample rate as a word",
		`[{"name": "x", "kind": "freeswitch", "address": "h:1", "password": "p", "listen_by": "uuid_audio_stream {call} start wss://t/ stereo 8k {metadata}"}]`:        "feeds[0].listen_by: want {provider} in it",
		`[{"name": "x", "kind": "asterisk", "address": "h:1", "username": "u", "secret": "s", "listen_by": "WebSocket/{provider}/c(slin)f(json)"}]`:                    "feeds[0].listen_by: want {parameters} in it",
		`[{"name": "x", "kind": "asterisk", "address": "h:1", "username": "u", "secret": "s", "time_zone": "Mars"}]`:                                                   "feeds[0].time_zone: want a zone such as Europe/Berlin",
		`[{"name": "x", "kind": "asterisk", "address": "h:1", "username": "u", "secret": "s", "account": "a", "accounts": [{"match": "m", "account": "b"}]}]`:          "feeds[0].accounts: feeds[0].account maps everything to one account",
		`[{"name": "x", "kind": "asterisk", "address": "h:1", "username": "u", "secret": "s", "accounts": [{"match": "m"}]}]`:                                          "feeds[0].accounts[0].account: want the id",
		`[{"name": "x", "kind": "kazoo", "url": "amqp://h"}, {"name": "x", "kind": "kazoo", "url": "amqp://h"}]`:                                                       `feeds[1].name: another feed is called "x"`,
	} {
		t.Run(text, func(t *testing.T) {
			if _, _, err := Load(Source{Env: []string{"TRUNKLINE_FEEDS=" + text}}); err == nil ||
				!strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	if _, _, err := Load(Source{File: "nowhere.yaml"}); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	secret := writeTempFile(t, "secret", "  s3cret\n")
	empty := writeTempFile(t, "empty", "\n")
	for _, c := range []struct {
		name     string
		env      []string
		password setting.Secret
		unknown  []string
		problem  string
	}{
		{name: "a wrong value names its variable", env: []string{"TRUNKLINE_KAFKA_PARTITIONS=x"},
			problem: "TRUNKLINE_KAFKA_PARTITIONS: kafka.partitions: want a whole number"},
		{name: "unknown names are told, not refused",
			env:     []string{"TRUNKLINE_SERVICE_HOST=10.0.0.1", "TRUNKLINE_PORT=tcp://1", "HOME=/"},
			unknown: []string{"TRUNKLINE_PORT", "TRUNKLINE_SERVICE_HOST"}},
		{name: "known names that are no settings are not told", env: []string{"TRUNKLINE_PASSWORD=x"}},
		{name: "a secret from a file is trimmed", env: []string{"TRUNKLINE_REDIS_PASSWORD_FILE=" + secret},
			password: "s3cret"},
		{name: "a secret and its file are one too many",
			env:     []string{"TRUNKLINE_REDIS_PASSWORD=a", "TRUNKLINE_REDIS_PASSWORD_FILE=" + secret},
			problem: "TRUNKLINE_REDIS_PASSWORD: redis.password: set here and by TRUNKLINE_REDIS_PASSWORD_FILE: unset one"},
		{name: "an empty secret file is a mistake", env: []string{"TRUNKLINE_REDIS_PASSWORD_FILE=" + empty},
			problem: "TRUNKLINE_REDIS_PASSWORD_FILE: redis.password: " + empty + " is empty"},
		{name: "a missing secret file is a mistake", env: []string{"TRUNKLINE_DATABASE_URL_FILE=/nowhere"},
			problem: "TRUNKLINE_DATABASE_URL_FILE: database.url: cannot be read: open /nowhere"},
		{name: "what is no secret has no file", env: []string{"TRUNKLINE_LISTEN_FILE=" + secret},
			unknown: []string{"TRUNKLINE_LISTEN_FILE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, unknown, err := Load(Source{Env: c.env, IgnoreEnv: []string{"TRUNKLINE_PASSWORD"}})
			if !slices.Equal(unknown, c.unknown) {
				t.Errorf("unknown %q, want %q", unknown, c.unknown)
			}

			if c.problem == "" {
				if err != nil || s.Redis.Password != c.password {
					t.Errorf("password %q, error %v", string(s.Redis.Password), err)
				}
			} else if err == nil || !strings.HasPrefix(err.Error(), c.problem) {
				t.Errorf("got %v, want %s", err, c.problem)
			}
		})
	}
}

func TestASecretIsReadAgainFromItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write("postgres://a:old@db/t")
	env := []string{"TRUNKLINE_DATABASE_URL_FILE=" + file, "TRUNKLINE_REDIS_PASSWORD=fixed"}
	s, _, err := Load(Source{Env: env})
	if err != nil {
		t.Fatal(err)
	}

	if s.SecretReader("redis.password") != nil {
		t.Error("a secret that did not come from a file is read from one")
	}

	read := s.SecretReader("database.url")

	write("postgres://a:new@db/t")
	if secret, err := read(); secret != "postgres://a:new@db/t" || err != nil {
		t.Errorf("after a change: %q, %v", secret, err)
	}

	write("")
	if _, err := read(); err == nil || !strings.HasPrefix(err.Error(), "database.url: ") {
		t.Errorf("an empty file: %v", err)
	}

	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--database.url=postgres://a:flag@db/t"}); err != nil {
		t.Fatal(err)
	}

	write("postgres://a:old@db/t")
	s, _, err = Load(Source{Env: env, Flags: flags})
	if err != nil || s.SecretReader("database.url") != nil {
		t.Errorf("a flag replaces the secret, which is still read from the file (%v)", err)
	}
}

func TestMasterKeyFileIsASettingOfItsOwn(t *testing.T) {
	s, unknown, err := Load(Source{Env: []string{"TRUNKLINE_MASTER_KEY_FILE=/nowhere/master.key"}})
	if err != nil || len(unknown) > 0 || s.MasterKeys.File != "/nowhere/master.key" || s.MasterKeys.Value != "" {
		t.Errorf("%+v %v %v", s, unknown, err)
	}
}

func TestFlagRefusesWhatCannotBeRead(t *testing.T) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(set)
	err := set.Parse([]string{"--drain-timeout", "soon"})
	if err == nil || !strings.Contains(err.Error(), "want a duration") {
		t.Errorf("got %v", err)
	}
}

// The help of a flag shows the type of its value.
func TestAFlagTellsItsType(t *testing.T) {
	set := parsedFlags(t)
	for name, want := range map[string]string{"drain_timeout": "duration", "tracing.sample": "number",
		"kafka.partitions": "number", "kafka.create_topics": "bool", "kafka.brokers": "list", "listen": "text",
		"fanout.queue_bytes": "size", "tls.cert_file": "file"} {
		if got := set.Lookup(name).Value.Type(); got != want {
			t.Errorf("--%s takes a %s, want a %s", name, got, want)
		}
	}
}

func TestOtherFlagsKeepTheirDashes(t *testing.T) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(set)
	set.Bool("password-stdin", false, "")
	if err := set.Parse([]string{"--password-stdin"}); err != nil ||
		set.Lookup("password-stdin").Name != "password-stdin" {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("listen: \":1\"\nkafka:\n  brokers: [a:1, b:2]\n  tls: {enabled: true}\n")
	f.Add("# nothing\n")
	f.Add("a: &a [*a]\n<<: *a\n? [x]\n: y\n")

	f.Fuzz(func(t *testing.T, text string) {
		s := Default()
		for _, problem := range newTree(s).readYAML("f", []byte(text)) {
			if !strings.HasPrefix(problem.String(), "f:") {
				t.Errorf("%q: a problem without its place: %s", text, problem)
			}
		}

		_ = setting.Validate("", s) // must not panic
	})
}

func FuzzEnv(f *testing.F) {
	f.Add("TRUNKLINE_KAFKA_BROKERS", "a:1,,b:2")
	f.Add("TRUNKLINE_FANOUT_QUEUE_BYTES", "9007199254740993GiB")
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.HasSuffix(name, "_FILE") {
			return // would open any file of the machine
		}

		s, _, err := Load(Source{Env: []string{name + "=" + value}})
		if (s == nil) == (err == nil) {
			t.Errorf("%q=%q: %v and %v", name, value, s, err)
		}
	})
}
