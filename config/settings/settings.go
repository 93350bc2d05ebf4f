package settings

import (
	"net/netip"
	"path/filepath"
	"time"
)

// Settings is everything that can be set. A field's yaml tags make its key
// (kafka.topic_prefix), its variable (TRUNKLINE_KAFKA_TOPIC_PREFIX) and its
// flag (--kafka.topic_prefix). The comment above a field or group names the
// room that reads it.
type Settings struct {
	// Read by app.
	Listen        string        `yaml:"listen" doc:"public listener, host:port"`
	MetricsListen string        `yaml:"metrics_listen" doc:"plain HTTP listener of /metrics, /livez, /readyz and /debug/pprof/, host:port"`
	DataDir       string        `yaml:"data_dir" doc:"directory of everything that is stored on this machine"`
	Roles         []string      `yaml:"roles" doc:"parts of the program that this process runs"`
	DrainTimeout  time.Duration `yaml:"drain_timeout" doc:"how long a shutdown may take"`

	// Read by api.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies" doc:"networks whose X-Forwarded-For is believed"`

	// Read by app/backend, for config/encryption.
	MasterKey     Secret `yaml:"master_key" doc:"keys that seal secrets at rest, 32 bytes each in base64 or hex, comma-separated, the newest last"`
	MasterKeyFile string `yaml:"master_key_file" doc:"file with the master keys, one a line; empty: master.key in data_dir"`

	// Read by app, for identity.Seed and identity.SeedDemo.
	DirectoryFile string `yaml:"directory_file" doc:"directory.yaml with the accounts and users of the first start"`
	DemoPassword  Secret `yaml:"demo_password" doc:"password of the demo users at first start; empty: generated and printed"`

	Log         Log         `yaml:"log"`
	TLS         TLS         `yaml:"tls"`
	Kafka       Kafka       `yaml:"kafka"`
	Redis       Redis       `yaml:"redis"`
	Database    Database    `yaml:"database"`
	Recordings  Recordings  `yaml:"recordings"`
	CDR         CDR         `yaml:"cdr"`
	Numbers     Numbers     `yaml:"numbers"`
	Origination Origination `yaml:"origination"`
	SIP         SIP         `yaml:"sip"`
	Auth        Auth        `yaml:"auth"`
	Ingest      Ingest      `yaml:"ingest"`
	Fanout      Fanout      `yaml:"fanout"`
	AIProvider  AIProvider  `yaml:"ai_provider"`
	AISession   AISession   `yaml:"aisession"`
	Tracing     Tracing     `yaml:"tracing"`
}

// Log is read by cmd, which makes the logger.
type Log struct {
	Level  string `yaml:"level" doc:"lowest level that is logged: debug, info, warn or error"`
	Format string `yaml:"format" doc:"text or json"`
}

// TLS is the public listener's, read by app.
type TLS struct {
	Mode     string `yaml:"mode" doc:"auto (self-signed unless a certificate is set), files, or off behind a proxy"`
	CertFile string `yaml:"cert_file" doc:"certificate chain, PEM; read again when it changes"`
	KeyFile  string `yaml:"key_file" doc:"private key of cert_file, PEM"`
}

// Kafka is read by app/backend.
type Kafka struct {
	Brokers           []string  `yaml:"brokers" doc:"bootstrap addresses, host:port; empty: the embedded broker"`
	TopicPrefix       string    `yaml:"topic_prefix" doc:"prefix of every topic name"`
	Partitions        int       `yaml:"partitions" doc:"partitions of the topics that Trunkline creates"`
	ReplicationFactor int       `yaml:"replication_factor" doc:"replicas of the topics that Trunkline creates; 0: three, or as many as there are brokers once all of kafka.brokers have been seen"`
	CreateTopics      bool      `yaml:"create_topics" doc:"create missing topics"`
	Strict            bool      `yaml:"strict" doc:"refuse to start where settings of existing topics endanger acknowledged records; off: log them"`
	Compression       string    `yaml:"compression" doc:"of produced batches: none, lz4 or zstd"`
	EmbeddedListen    string    `yaml:"embedded_listen" doc:"loopback address on which the embedded broker also listens, for kcat; empty: none"`
	EmbeddedMaxBytes  Bytes     `yaml:"embedded_max_bytes" doc:"size of the embedded broker's log; beyond it the oldest records are deleted"`
	TLS               ClientTLS `yaml:"tls"`
	SASL              SASL      `yaml:"sasl"`
}

// ClientTLS configures TLS to a backend.
type ClientTLS struct {
	Enabled  bool   `yaml:"enabled" doc:"use TLS"`
	CAFile   string `yaml:"ca_file" doc:"CA certificates, PEM; empty: the system's"`
	CertFile string `yaml:"cert_file" doc:"client certificate, PEM; empty: none"`
	KeyFile  string `yaml:"key_file" doc:"private key of cert_file, PEM"`
}

// SASL configures the login to Kafka.
type SASL struct {
	Mechanism string `yaml:"mechanism" doc:"plain, scram-sha-256 or scram-sha-512; empty: none"`
	Username  string `yaml:"username" doc:"user name"`
	Password  Secret `yaml:"password" doc:"password"`

	PasswordFile string `yaml:"password_file" doc:"file that holds the password; read again for each connection"`
}

// Redis is read by app/backend.
type Redis struct {
	Address   string    `yaml:"address" doc:"host:port; empty: the embedded Redis"`
	Username  string    `yaml:"username" doc:"user name; empty: the default user"`
	Password  Secret    `yaml:"password" doc:"password"`
	DB        int       `yaml:"db" doc:"database number"`
	KeyPrefix string    `yaml:"key_prefix" doc:"prefix of every key"`
	TLS       ClientTLS `yaml:"tls"`
}

// Database is read by app/backend.
type Database struct {
	URL URL `yaml:"url" doc:"postgres://user:password@host/name; empty: SQLite in data_dir"`
}

// Recordings is read by app/backend, for recording.
type Recordings struct {
	URL      URL   `yaml:"url" doc:"s3://KEY:SECRET@host:port/bucket of an S3-compatible store, with ?tls=false or &region=R where needed; empty: recordings in data_dir"`
	MaxBytes Bytes `yaml:"max_bytes" doc:"size of the largest recording that is accepted; 0: no limit"`
}

// CDR is read by app, for cdrindex.
type CDR struct {
	RetentionMonths int `yaml:"retention_months" doc:"whole months of call records kept in the database beside the current one; 0: all"`
}

// Numbers is read by app, for telephony/number.
type Numbers struct {
	Country        string   `yaml:"country" doc:"country in which accounts dial, ISO 3166 code of two letters, as DE: AI providers get its numbers in E.164; empty: only numbers that begin with +"`
	AccountCountry []string `yaml:"account_country" doc:"the same for one account, in place of country, each written ACCOUNT=COUNTRY"`
}

// Origination is read by app, for origination and its drivers.
type Origination struct {
	Driver        string        `yaml:"driver" doc:"phone platform: sip, freeswitch, kazoo, simulator (no phone rings), or auto (sip where the owner's phone is registered, else simulator); empty: sip where sip.listen is on"`
	Allow         []string      `yaml:"allow" doc:"regular expressions; a destination that matches none is refused; empty: all may be dialled"`
	Deny          []string      `yaml:"deny" doc:"regular expressions; a destination that matches one is refused"`
	AccountAllow  []string      `yaml:"account_allow" doc:"the same for one account, in place of allow, each written ACCOUNT=EXPRESSION"`
	AccountDeny   []string      `yaml:"account_deny" doc:"the same for one account, in place of deny, each written ACCOUNT=EXPRESSION"`
	UserPerMinute int           `yaml:"user_per_minute" doc:"calls that a user may place in a minute, then 429; 0: no limit"`
	MaxCalls      int           `yaml:"max_calls" doc:"open calls of this node, then 503"`
	Retention     time.Duration `yaml:"retention" doc:"how long the progress of an ended call is kept"`
	FreeSWITCH    FreeSWITCH    `yaml:"freeswitch"`
	Kazoo         Kazoo         `yaml:"kazoo"`
}

// Kazoo is read by app, for origination/kazoo.
type Kazoo struct {
	URL      string   `yaml:"url" doc:"address of Kazoo's HTTP API, as https://kazoo.example.com:8443"`
	APIKey   Secret   `yaml:"api_key" doc:"API key of the Kazoo account that is the parent of the others"`
	Accounts []string `yaml:"accounts" doc:"Kazoo's account ids, each written ACCOUNT=KAZOO_ACCOUNT; an account that is not listed has the same id"`
}

// Auth is read by identity.
type Auth struct {
	AccessTTL  time.Duration `yaml:"access_ttl" doc:"lifetime of a portal access token"`
	RefreshTTL time.Duration `yaml:"refresh_ttl" doc:"lifetime of a portal refresh token"`
	EventsTTL  time.Duration `yaml:"events_ttl" doc:"lifetime of an events channel token"`
}

// Ingest is read by ingest.
type Ingest struct {
	MaxInFlightBytes   Bytes         `yaml:"max_in_flight_bytes" doc:"memory of all bodies being worked on; more wait"`
	MaxBodiesPerCaller int           `yaml:"max_bodies_per_caller" doc:"bodies of one key being worked on at the same time; more wait"`
	ProduceTimeout     time.Duration `yaml:"produce_timeout" doc:"how long a body waits for its turn, then 429, and its records for Kafka, then 503"`
}

// Fanout is read by fanout.
type Fanout struct {
	PingInterval             time.Duration `yaml:"ping_interval" doc:"time between pings to a subscriber"`
	IdleTimeout              time.Duration `yaml:"idle_timeout" doc:"a connection silent for this long is closed"`
	QueueBytes               Bytes         `yaml:"queue_bytes" doc:"bytes of memory that the queue of one subscriber may keep, then it is closed with 4008"`
	NodeQueueBytes           Bytes         `yaml:"node_queue_bytes" doc:"bytes of memory that all queues of a node may keep, then the subscribers with the longest are closed with 4008"`
	RingBytes                Bytes         `yaml:"ring_bytes" doc:"recent events kept in memory for resumes, all partitions together"`
	GatherWindow             time.Duration `yaml:"gather_window" doc:"how long events wait so that one write carries several; 0: they do not"`
	Compression              bool          `yaml:"compression" doc:"offer permessage-deflate"`
	AllowedOrigins           []string      `yaml:"allowed_origins" doc:"origins that may open a WebSocket; empty: the request's own, and requests without one"`
	MaxConnectionsPerAccount int           `yaml:"max_connections_per_account" doc:"open connections of one account in the cluster; 0: no limit"`
	MaxConnectionsPerUser    int           `yaml:"max_connections_per_user" doc:"open connections of one user in the cluster; 0: no limit"`
	MaxConnectionsPerAddress int           `yaml:"max_connections_per_address" doc:"open connections from one address in the cluster; 0: no limit"`
	OnLimit                  string        `yaml:"on_limit" doc:"over a limit: refuse the new connection, or replace the oldest"`
	SnapshotHistory          time.Duration `yaml:"snapshot_history" doc:"age of the events that snapshots are made from; negative: no snapshots"`
	SnapshotBytes            Bytes         `yaml:"snapshot_bytes" doc:"bytes of memory for the agents and calls in snapshots; beyond it those without an event for longest are left out"`
	DrainSpread              time.Duration `yaml:"drain_spread" doc:"time over which a shutdown disconnects subscribers"`
}

// AIProvider is read by app, for config/aiprovider.
type AIProvider struct {
	AllowNetworks []netip.Prefix `yaml:"allow_networks" doc:"networks that are not public and that providers' addresses may be in; with loopback among them ws is accepted for URLs whose host is a loopback name or address"`
}

// AISession is read by app, for aisession.
type AISession struct {
	MaxSessions            int           `yaml:"max_sessions" doc:"sessions at the same time on this node; more calls are refused; 0: no limit"`
	MaxPerAccount          int           `yaml:"max_per_account" doc:"sessions of one account at the same time in the cluster; more calls are refused; 0: no limit"`
	ConnectTimeout         time.Duration `yaml:"connect_timeout" doc:"timeout of one attempt to connect to a provider, handshake included"`
	GiveUp                 time.Duration `yaml:"give_up" doc:"how long a provider may be away before its fallback acts"`
	SilenceTimeout         time.Duration `yaml:"silence_timeout" doc:"how long a provider may send no audio before its fallback acts; 0: as long as it likes"`
	PlayoutLimit           time.Duration `yaml:"playout_limit" doc:"a provider's audio that may wait to be played; more is dropped"`
	PlayoutLead            time.Duration `yaml:"playout_lead" doc:"a provider's audio that is buffered before it is played, against gaps; negative: none"`
	DrainLimit             time.Duration `yaml:"drain_limit" doc:"how long sessions may continue during a shutdown; at most three quarters of drain_timeout"`
	AnnouncedFor           time.Duration `yaml:"announced_for" doc:"how long an announced AudioSocket call is expected"`
	AudioSocketListen      string        `yaml:"audiosocket_listen" doc:"listener for Asterisk's AudioSocket, host:port, on a network that only the PBX can reach; empty: none"`
	AudioSocketConnections int           `yaml:"audiosocket_connections" doc:"AudioSocket connections at the same time on this node; more are closed"`
}

// Roles that a process can have.
const (
	RoleIngest      = "ingest"
	RoleNormalizer  = "normalizer"
	RoleFanout      = "fanout"
	RoleCDRIndex    = "cdrindex"
	RoleOrigination = "origination"
	RoleAISession   = "aisession"
	RoleAPI         = "api"
)

// AllRoles lists every role.
func AllRoles() []string {
	return []string{RoleIngest, RoleNormalizer, RoleFanout, RoleCDRIndex, RoleOrigination, RoleAISession, RoleAPI}
}

// Default returns the settings where nothing is set.
func Default() *Settings {
	return &Settings{
		Listen:        ":9443",
		MetricsListen: "127.0.0.1:9464",
		DataDir:       "data",
		Roles:         AllRoles(),
		DrainTimeout:  20 * time.Second,
		Log:           Log{Level: "info", Format: "text"},
		TLS:           TLS{Mode: "auto"},
		Kafka: Kafka{
			Partitions:       64,
			CreateTopics:     true,
			Compression:      "none",
			EmbeddedMaxBytes: 512 << 20,
		},
		Redis:       Redis{KeyPrefix: "trunkline:"},
		Origination: Origination{UserPerMinute: 30, MaxCalls: 10_000, Retention: 30 * 24 * time.Hour, FreeSWITCH: defaultFreeSWITCH()},
		SIP:         defaultSIP(),
		AISession: AISession{
			ConnectTimeout: 5 * time.Second, GiveUp: 10 * time.Second, PlayoutLimit: 5 * time.Minute, PlayoutLead: 40 * time.Millisecond,
			DrainLimit: 10 * time.Second, AnnouncedFor: 2 * time.Minute, AudioSocketConnections: 1000,
		},
		Auth: Auth{
			AccessTTL:  time.Hour,
			RefreshTTL: 30 * 24 * time.Hour,
			EventsTTL:  24 * time.Hour,
		},
		Ingest: Ingest{MaxInFlightBytes: 256 << 20, MaxBodiesPerCaller: 1024, ProduceTimeout: 15 * time.Second},
		Fanout: Fanout{
			PingInterval:    25 * time.Second,
			IdleTimeout:     60 * time.Second,
			QueueBytes:      1 << 20,
			NodeQueueBytes:  1 << 30,
			RingBytes:       64 << 20,
			OnLimit:         "refuse",
			SnapshotHistory: 24 * time.Hour,
			SnapshotBytes:   256 << 20,
			DrainSpread:     5 * time.Second,
		},
		Tracing: Tracing{Sample: 0.01},
	}
}

// SelfSigned names the files of the certificate that is made when none is
// configured.
func (s *Settings) SelfSigned() (certFile, keyFile string) {
	return filepath.Join(s.DataDir, "tls", "cert.pem"), filepath.Join(s.DataDir, "tls", "key.pem")
}
