package settings

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/origination"
	"trunkline/recording"
	"trunkline/telephony/number"
)

// checks collects problems of values.
type checks struct{ problems Problems }

func (c *checks) must(ok bool, key, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

// Validate gives everything that is wrong with the values. It looks at nothing
// else: whether a file or a server is there is found out by who needs it.
func (s *Settings) Validate() Problems {
	c := &checks{}
	c.hostPort("listen", s.Listen)
	c.hostPort("metrics_listen", s.MetricsListen)
	c.must(s.DataDir != "", "data_dir", "name a directory")
	c.must(len(s.Roles) > 0, "roles", "name at least one of %s", strings.Join(AllRoles(), ", "))
	for _, role := range s.Roles {
		c.oneOf("roles", role, AllRoles()...)
	}
	c.positive("drain_timeout", s.DrainTimeout)
	c.must(s.MasterKey == "" || s.MasterKeyFile == "", "master_key", "set here and by master_key_file: unset one")
	c.oneOf("log.level", s.Log.Level, "debug", "info", "warn", "error")
	c.oneOf("log.format", s.Log.Format, "text", "json")
	c.tls(&s.TLS)
	c.kafka(&s.Kafka)
	c.redis(&s.Redis)
	c.database(&s.Database)
	c.recordings(&s.Recordings)
	c.must(s.CDR.RetentionMonths >= 0, "cdr.retention_months", "must not be negative, is %d", s.CDR.RetentionMonths)
	c.numbers(&s.Numbers)
	c.origination(&s.Origination)
	c.sip(&s.SIP)
	c.auth(&s.Auth)
	c.ingest(&s.Ingest)
	c.fanout(&s.Fanout)
	c.aiProvider(&s.AIProvider)
	c.aiSession(&s.AISession)
	c.tracing(&s.Tracing)
	return c.problems
}

func (c *checks) tls(t *TLS) {
	c.oneOf("tls.mode", t.Mode, "auto", "files", "off")
	c.together("tls.cert_file", t.CertFile, "tls.key_file", t.KeyFile)
	c.must(t.Mode != "files" || t.CertFile != "", "tls.mode", "files needs tls.cert_file and tls.key_file")
}

func (c *checks) kafka(k *Kafka) {
	for _, broker := range k.Brokers {
		c.dialable("kafka.brokers", broker)
	}
	for _, r := range k.TopicPrefix {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			c.must(false, "kafka.topic_prefix", "Kafka allows letters, digits and . _ - in a topic's name")
			break
		}
	}
	c.must(len(k.TopicPrefix) <= 100, "kafka.topic_prefix", "must be at most 100 characters")
	c.must(k.Partitions >= 1 && k.Partitions <= event.MaxPartitions, "kafka.partitions",
		"must be 1 to %d, is %d", event.MaxPartitions, k.Partitions)
	c.must(k.ReplicationFactor >= 0 && k.ReplicationFactor <= 32767, "kafka.replication_factor",
		"must be 0 or a number of brokers, is %d", k.ReplicationFactor)
	if k.EmbeddedListen != "" {
		host := c.hostPort("kafka.embedded_listen", k.EmbeddedListen)
		address, err := netip.ParseAddr(host)
		c.must(host == "localhost" || err == nil && address.IsLoopback(), "kafka.embedded_listen",
			"the embedded broker knows no passwords: take a loopback address, as 127.0.0.1:9092")
		c.must(len(k.Brokers) == 0, "kafka.embedded_listen", "there is no embedded broker when kafka.brokers is set: unset one")
	}
	c.must(k.EmbeddedMaxBytes >= 64<<20, "kafka.embedded_max_bytes", "must be at least 64MiB, is %s", k.EmbeddedMaxBytes)
	c.clientTLS("kafka.tls", &k.TLS)
	c.oneOf("kafka.sasl.mechanism", k.SASL.Mechanism, "", "plain", "scram-sha-256", "scram-sha-512")
	named := k.SASL.Mechanism != ""
	c.must(!named || k.SASL.Username != "", "kafka.sasl.username", "kafka.sasl.mechanism needs it")
	c.must(!named || k.SASL.Password != "" || k.SASL.PasswordFile != "", "kafka.sasl.password", "kafka.sasl.mechanism needs it")
	c.must(k.SASL.Password == "" || k.SASL.PasswordFile == "", "kafka.sasl.password_file", "kafka.sasl.password is set too: unset one")
	c.oneOf("kafka.compression", k.Compression, "none", "lz4", "zstd")
	c.must(named || k.SASL.Username == "" && k.SASL.Password == "" && k.SASL.PasswordFile == "", "kafka.sasl.mechanism",
		"kafka.sasl.username and kafka.sasl.password need it")
}

func (c *checks) redis(r *Redis) {
	if r.Address != "" {
		c.dialable("redis.address", r.Address)
	}
	c.must(r.DB >= 0, "redis.db", "must not be negative, is %d", r.DB)
	c.clientTLS("redis.tls", &r.TLS)
}

func (c *checks) database(d *Database) {
	if d.URL == "" {
		return
	}
	parsed, err := url.Parse(string(d.URL)) // its error would show the password
	c.must(err == nil && (parsed.Scheme == "postgres" || parsed.Scheme == "postgresql") && parsed.Host != "",
		"database.url", "want postgres://user:password@host:5432/name")
}

func (c *checks) recordings(r *Recordings) {
	if r.URL == "" {
		return
	}
	_, err := recording.ParseS3URL(string(r.URL))
	c.must(err == nil, "recordings.url", "%v", err)
}

func (c *checks) numbers(n *Numbers) {
	_, err := number.NewPlan(n.Country, nil)
	c.must(err == nil, "numbers.country", "%v", err)
	_, err = number.NewPlan("", n.AccountCountry)
	c.must(err == nil, "numbers.account_country", "%v", err)
}

func (c *checks) origination(o *Origination) {
	c.oneOf("origination.driver", o.Driver, "", "auto", "sip", "freeswitch", "kazoo", "simulator")
	for key, texts := range map[string]origination.RuleTexts{
		"origination.allow": {Allow: o.Allow}, "origination.deny": {Deny: o.Deny},
		"origination.account_allow": {AccountAllow: o.AccountAllow}, "origination.account_deny": {AccountDeny: o.AccountDeny},
	} {
		_, err := origination.ParseRules(texts)
		c.must(err == nil, key, "%v", err)
	}
	c.notNegative("origination.user_per_minute", o.UserPerMinute)
	c.must(o.MaxCalls >= 1, "origination.max_calls", "must be at least 1, is %d", o.MaxCalls)
	c.must(o.Retention >= time.Minute, "origination.retention", "must be at least 1m, is %s", shortDuration(o.Retention))
	if o.Driver == "freeswitch" {
		c.freeswitch(&o.FreeSWITCH)
	}
	if o.Driver == "kazoo" {
		c.must(o.Kazoo.URL != "", "origination.kazoo.url", "origination.driver kazoo needs it")
		c.must(o.Kazoo.APIKey != "", "origination.kazoo.api_key", "origination.driver kazoo needs it")
	}
	_, err := o.Kazoo.AccountMap()
	c.must(err == nil, "origination.kazoo.accounts", "%v", err)
}

// AccountMap is Accounts by our id.
func (k *Kazoo) AccountMap() (map[string]string, error) {
	ids := make(map[string]string, len(k.Accounts))
	for _, text := range k.Accounts {
		ours, theirs, ok := strings.Cut(text, "=")
		if !ok || ours == "" || theirs == "" {
			return nil, fmt.Errorf("%q is not written ACCOUNT=KAZOO_ACCOUNT", text)
		}
		ids[ours] = theirs
	}
	return ids, nil
}

func (c *checks) auth(a *Auth) {
	c.tokenTTL("auth.access_ttl", a.AccessTTL)
	c.tokenTTL("auth.events_ttl", a.EventsTTL)
	c.must(a.RefreshTTL >= a.AccessTTL, "auth.refresh_ttl", "must not be shorter than auth.access_ttl (%s), is %s",
		shortDuration(a.AccessTTL), shortDuration(a.RefreshTTL))
}

// tokenTTL checks the life of a token that is checked without the database.
func (c *checks) tokenTTL(key string, d time.Duration) {
	const most = 30 * 24 * time.Hour
	c.must(d >= time.Second && d <= most, key, "must be 1s to %s, is %s", shortDuration(most), shortDuration(d))
}

func (c *checks) ingest(i *Ingest) {
	c.must(i.MaxInFlightBytes >= 64<<20, "ingest.max_in_flight_bytes",
		"must be at least 64MiB, what one body can need, is %s", i.MaxInFlightBytes)
	c.must(i.MaxBodiesPerCaller >= 1, "ingest.max_bodies_per_caller", "must be at least 1, is %d", i.MaxBodiesPerCaller)
	c.positive("ingest.produce_timeout", i.ProduceTimeout)
}

func (c *checks) fanout(f *Fanout) {
	c.positive("fanout.ping_interval", f.PingInterval)
	c.must(f.IdleTimeout > f.PingInterval, "fanout.idle_timeout", "must be longer than fanout.ping_interval (%s), is %s",
		shortDuration(f.PingInterval), shortDuration(f.IdleTimeout))
	c.must(f.QueueBytes >= 4<<10, "fanout.queue_bytes", "must be at least 4KiB, is %s", f.QueueBytes)
	c.must(f.SnapshotBytes >= 1<<20, "fanout.snapshot_bytes", "must be at least 1MiB, is %s", f.SnapshotBytes)
	c.must(f.NodeQueueBytes >= f.QueueBytes, "fanout.node_queue_bytes", "must not be less than fanout.queue_bytes (%s), is %s",
		f.QueueBytes, f.NodeQueueBytes)
	c.must(f.GatherWindow >= 0 && f.GatherWindow <= time.Second, "fanout.gather_window",
		"must be 0 to 1s, is %s", shortDuration(f.GatherWindow))
	for _, origin := range f.AllowedOrigins {
		parsed, err := url.Parse(origin)
		c.must(err == nil && parsed.Scheme != "" && parsed.Host != "" && parsed.Path == "",
			"fanout.allowed_origins", "want origins such as https://board.example.com, got %q", origin)
	}
	c.notNegative("fanout.max_connections_per_account", f.MaxConnectionsPerAccount)
	c.notNegative("fanout.max_connections_per_user", f.MaxConnectionsPerUser)
	c.notNegative("fanout.max_connections_per_address", f.MaxConnectionsPerAddress)
	c.oneOf("fanout.on_limit", f.OnLimit, "refuse", "replace")
	c.must(f.DrainSpread >= 0, "fanout.drain_spread", "must not be negative, is %s", shortDuration(f.DrainSpread))
}

func (c *checks) aiSession(a *AISession) {
	c.notNegative("aisession.max_sessions", a.MaxSessions)
	c.notNegative("aisession.max_per_account", a.MaxPerAccount)
	c.positive("aisession.connect_timeout", a.ConnectTimeout)
	c.positive("aisession.give_up", a.GiveUp)
	c.must(a.SilenceTimeout >= 0, "aisession.silence_timeout", "must not be negative, is %s", shortDuration(a.SilenceTimeout))
	c.must(a.PlayoutLimit >= time.Second && a.PlayoutLimit <= time.Hour, "aisession.playout_limit",
		"must be 1s to 1h, is %s", shortDuration(a.PlayoutLimit))
	c.must(a.PlayoutLead <= time.Second, "aisession.playout_lead", "must be at most 1s, is %s", shortDuration(a.PlayoutLead))
	c.positive("aisession.drain_limit", a.DrainLimit)
	c.positive("aisession.announced_for", a.AnnouncedFor)
	if a.AudioSocketListen != "" {
		c.hostPort("aisession.audiosocket_listen", a.AudioSocketListen)
	}
	c.must(a.AudioSocketConnections >= 1, "aisession.audiosocket_connections", "must be at least 1, is %d", a.AudioSocketConnections)
}

func (c *checks) aiProvider(a *AIProvider) {
	for _, network := range a.AllowNetworks {
		c.must(!network.Addr().Is4In6(), "ai_provider.allow_networks", "write %s as an IPv4 network", network)
	}
}

func (c *checks) clientTLS(key string, t *ClientTLS) {
	c.together(key+".cert_file", t.CertFile, key+".key_file", t.KeyFile)
	unused := t.CAFile == "" && t.CertFile == ""
	c.must(t.Enabled || unused, key+".enabled", "its other settings have no effect until it is true")
}

func (c *checks) together(keyA, a, keyB, b string) {
	c.must(a == "" || b != "", keyB, "%s needs it", keyA)
	c.must(b == "" || a != "", keyA, "%s needs it", keyB)
}

func (c *checks) oneOf(key, value string, allowed ...string) {
	c.must(slices.Contains(allowed, value), key, "want %s, got %q", strings.Join(quoteEmpty(allowed), ", "), value)
}

func quoteEmpty(words []string) []string {
	quoted := slices.Clone(words)
	for i, word := range quoted {
		if word == "" {
			quoted[i] = `""`
		}
	}
	return quoted
}

func (c *checks) positive(key string, d time.Duration) {
	c.must(d > 0, key, "must be longer than 0, is %s", shortDuration(d))
}

func (c *checks) notNegative(key string, n int) {
	c.must(n >= 0, key, "must not be negative, is %d", n)
}

// hostPort checks an address to listen on, and gives its host.
func (c *checks) hostPort(key, address string) (host string) {
	host, port, err := net.SplitHostPort(address)
	_, portErr := strconv.ParseUint(port, 10, 16)
	c.must(err == nil && portErr == nil, key, "want host:port or :port, got %q", address)
	return host
}

// dialable checks an address to connect to.
func (c *checks) dialable(key, address string) {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	c.must(err == nil && portErr == nil && host != "" && n > 0, key, "want host:port, got %q", address)
}
