package feed

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"trunkline/internal/setting"
	"trunkline/internal/tlsclient"
)

// Settings holds the settings of all feeds.
type Settings struct {
	SpoolBytes setting.Bytes `yaml:"spool_bytes" doc:"space on the disk of data_dir for the events of one feed that Kafka does not have yet; a full spool stops reading"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings { return Settings{SpoolBytes: 1 << 30} }

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.SpoolBytes >= minSpoolBytes, "spool_bytes", "must be at least %s, is %s", minSpoolBytes, s.SpoolBytes)
}

// minSpoolBytes is enough for a few of the largest records.
const minSpoolBytes setting.Bytes = 16 << 20

// The kinds of platforms.
const (
	KindFreeSWITCH = "freeswitch"
	KindAsterisk   = "asterisk"
	KindKazoo      = "kazoo"
)

// Config holds one entry of the setting feeds. Validate defines the keys of each kind of platform.
type Config struct {
	Name       string             `yaml:"name" doc:"the feed's own name, 1 to 64 of a-z, A-Z, 0-9, _, . and -; records have the source feed:NAME"`
	Kind       string             `yaml:"kind" doc:"freeswitch, asterisk or kazoo"`
	Address    string             `yaml:"address" doc:"freeswitch, asterisk: host:port of the event socket or the manager interface"`
	URL        setting.URL        `yaml:"url" doc:"kazoo: amqp://user:password@host:port/vhost of its RabbitMQ; amqps:// with TLS"`
	User       string             `yaml:"user" doc:"freeswitch: user@domain of the directory to log in as; empty: the password alone"`
	Password   setting.Secret     `yaml:"password" doc:"freeswitch: password of the event socket"`
	Username   string             `yaml:"username" doc:"asterisk: user of manager.conf"`
	Secret     setting.Secret     `yaml:"secret" doc:"asterisk: secret of the user"`
	TLS        tlsclient.Settings `yaml:"tls"`
	Account    string             `yaml:"account" doc:"account that everything of this platform belongs to; empty: by accounts"`
	Accounts   []AccountRule      `yaml:"accounts" doc:"rules tried in order before the directory's domains"`
	Events     []string           `yaml:"events" doc:"event names to subscribe to, in the platform's own syntax; empty: all that Trunkline understands"`
	Redundancy int                `yaml:"redundancy" doc:"nodes that read this platform at the same time, 1 or 2"`

	AccountVariable string `yaml:"account_variable" doc:"freeswitch, asterisk: channel variable with the name that is mapped to an account; empty: none"`
	UseAccountcode  bool   `yaml:"use_accountcode" doc:"freeswitch, asterisk: map a channel's account code to an account"`
	TimeZone        string `yaml:"time_zone" doc:"asterisk: zone of the switch's local times, such as Europe/Berlin"`

	ListenBeep bool `yaml:"listen_beep" doc:"freeswitch, asterisk: both parties of a call hear a beep before somebody listens, whispers or barges in; without the beep nobody does"`

	ListenBy setting.Secret `yaml:"listen_by" doc:"freeswitch: the command that sends the audio of a call to an AI provider that listens; asterisk: the channel; see ai.md"`

	CrossbarURL    string         `yaml:"crossbar_url" doc:"kazoo: address of Crossbar, such as https://kazoo.example.com:8443"`
	CrossbarAPIKey setting.Secret `yaml:"crossbar_api_key" doc:"kazoo: API key of the account whose descendants are read"`
	SyncAccounts   bool           `yaml:"sync_accounts" doc:"kazoo: keep the accounts equal to Crossbar's"`
}

// AccountRule maps names to an account.
type AccountRule struct {
	Match   string `yaml:"match" doc:"a domain, or a name of a queue or context, as the platform has it; * matches any characters"`
	Account string `yaml:"account" doc:"id, name or domain of the account"`
}

// SetDefaults sets the defaults of absent keys.
func (c *Config) SetDefaults() {
	*c = Config{Redundancy: 1, TimeZone: "UTC"}
}

// Source returns the value of the header source of the feed's records.
func (c *Config) Source() string { return sourcePrefix + c.Name }

// sourcePrefix begins the source of a feed's records; the feed's name follows.
const sourcePrefix = "feed:"

// maxNameLength is the largest length of a feed's name in bytes. The name is also a folder's name.
const maxNameLength = 64

// ValidateConfigs checks the entries of the list called name.
func ValidateConfigs(c *setting.Check, name string, configs []Config) {
	names := make(map[string]bool)
	for i, cfg := range configs {
		entry := c.Group(fmt.Sprintf("%s[%d]", name, i))
		cfg.Validate(entry)
		entry.Must(!names[cfg.Name], "name", "another feed is called %q", cfg.Name)
		names[cfg.Name] = true
	}
}

// Validate implements setting.Group.
func (c Config) Validate(check *setting.Check) {
	check.Must(validName(c.Name), "name",
		"want 1 to %d of letters, digits, _, . and -, beginning with a letter or digit, got %q", maxNameLength, c.Name)
	check.OneOf("kind", c.Kind, KindFreeSWITCH, KindAsterisk, KindKazoo)
	c.validateKind(check)
	c.TLS.Validate(check.Group("tls"))
	check.Must(c.Account == "" || len(c.Accounts) == 0, "accounts", "%s maps everything to one account: unset one",
		check.Key("account"))

	for i, rule := range c.Accounts {
		in := check.Group(fmt.Sprintf("accounts[%d]", i))
		in.Must(rule.Match != "", "match", "want a domain, or a pattern with *")
		in.Must(rule.Account != "", "account", "want the id, name or domain of an account")
	}

	for _, word := range c.Events {
		check.Must(strings.TrimSpace(word) != "" && !strings.ContainsAny(word, "\r\n"), "events",
			"want words of the platform, got %q", word)
	}

	check.Must(c.Redundancy == 1 || c.Redundancy == 2, "redundancy", "must be 1 or 2, is %d", c.Redundancy)
	check.Must(c.Kind != KindKazoo || c.Redundancy != 2, "redundancy",
		"kazoo needs 1: its queue keeps the events while no node reads them")
	_, err := time.LoadLocation(c.TimeZone)
	check.Must(err == nil, "time_zone", "want a zone such as Europe/Berlin, got %q", c.TimeZone)
}

// validateKind checks the keys that only some kinds have.
func (c Config) validateKind(check *setting.Check) {
	const needed = true
	for _, key := range []struct {
		name   string
		set    bool
		needed bool
		kinds  []string
	}{
		{"address", c.Address != "", needed, []string{KindFreeSWITCH, KindAsterisk}},
		{"url", c.URL != "", needed, []string{KindKazoo}},
		{"password", c.Password != "", needed, []string{KindFreeSWITCH}},
		{"user", c.User != "", !needed, []string{KindFreeSWITCH}},
		{"username", c.Username != "", needed, []string{KindAsterisk}},
		{"secret", c.Secret != "", needed, []string{KindAsterisk}},
		{"account_variable", c.AccountVariable != "", !needed, []string{KindFreeSWITCH, KindAsterisk}},
		{"use_accountcode", c.UseAccountcode, !needed, []string{KindFreeSWITCH, KindAsterisk}},
		{"listen_beep", c.ListenBeep, !needed, []string{KindFreeSWITCH, KindAsterisk}},
		{"listen_by", c.ListenBy != "", !needed, []string{KindFreeSWITCH, KindAsterisk}},
		{"time_zone", c.TimeZone != "UTC", !needed, []string{KindAsterisk}},
		{"crossbar_url", c.CrossbarURL != "", !needed, []string{KindKazoo}},
		{"crossbar_api_key", c.CrossbarAPIKey != "", !needed, []string{KindKazoo}},
		{"sync_accounts", c.SyncAccounts, !needed, []string{KindKazoo}},
	} {
		has := slices.Contains(key.kinds, c.Kind)
		check.Must(has || !key.set || c.Kind == "", key.name, "a feed of kind %s does not have it", c.Kind)
		check.Must(!has || !key.needed || key.set, key.name, "a feed of kind %s needs it", c.Kind)
	}

	if c.Address != "" {
		check.Dialable("address", c.Address)
	}
	if c.ListenBy != "" {
		c.validateListenBy(check)
	}
	if c.URL != "" {
		check.Must(strings.HasPrefix(string(c.URL), "amqp://") || strings.HasPrefix(string(c.URL), "amqps://"), "url",
			"want amqp://user:password@host:port/vhost")
	}

	if c.CrossbarURL != "" {
		check.Must(strings.HasPrefix(c.CrossbarURL, "https://") || strings.HasPrefix(c.CrossbarURL, "http://"),
			"crossbar_url",
			"want an address such as https://kazoo.example.com:8443, got %q", setting.URL(c.CrossbarURL))
	}

	check.Together("crossbar_url", c.CrossbarURL, "crossbar_api_key", string(c.CrossbarAPIKey))
	check.Must(!c.SyncAccounts || c.CrossbarURL != "", "crossbar_url", "%s needs it", check.Key("sync_accounts"))
}

// validateListenBy checks the key listen_by, whose text may have an API key and is not shown.
func (c Config) validateListenBy(check *setting.Check) {
	text := string(c.ListenBy)
	needed := []string{ListenProvider, ListenParameters}
	if c.Kind == KindFreeSWITCH {
		needed = []string{ListenCall, ListenProvider, ListenMetadata}
		_, known := ListenRate(text)
		check.Must(known, "listen_by", "want the sample rate as a word: 8k, 16k, 8000 or 16000")
	}

	for _, placeholder := range needed {
		check.Must(strings.Contains(text, placeholder), "listen_by", "want %s in it", placeholder)
	}

	check.Must(!strings.ContainsFunc(text, unicode.IsControl), "listen_by", "want one line")
}

// The parts of listen_by that each call replaces.
const (
	ListenCall       = "{call}"       // freeswitch: the caller's channel
	ListenProvider   = "{provider}"   // id of the AI provider
	ListenMetadata   = "{metadata}"   // freeswitch: a JSON object without spaces, for the first frame
	ListenParameters = "{parameters}" // asterisk: the URI's, separated by commas
)

// ListenRate returns the sample rate in Hz that FreeSWITCH's command in listen_by sends.
func ListenRate(command string) (hz int, known bool) {
	rates := map[string]int{"8k": 8000, "8000": 8000, "16k": 16_000, "16000": 16_000}
	for _, word := range strings.Fields(command) {
		hz, known = rates[word]
		if known {
			return hz, true
		}
	}
	return 0, false
}

// validName reports whether a feed can have the name, which is also that of a folder.
func validName(name string) bool {
	for i, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return name != "" && len(name) <= maxNameLength
}

// FeedOfSource returns the name of the feed whose records have a source, "" if that is no feed's.
func FeedOfSource(source string) string {
	name, ok := strings.CutPrefix(source, sourcePrefix)
	if !ok {
		return ""
	}
	return name
}
