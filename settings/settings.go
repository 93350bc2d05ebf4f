package settings

import (
	"fmt"
	"path/filepath"
	"time"

	"trunkline/aisession"
	"trunkline/aisession/audiosocket"
	"trunkline/api"
	"trunkline/audit"
	"trunkline/cdrindex"
	"trunkline/config/aiprovider"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/ingest"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/masterkey"
	"trunkline/internal/redisclient"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
	"trunkline/normalizer"
	"trunkline/origination"
	"trunkline/origination/asterisk"
	"trunkline/origination/freeswitch"
	"trunkline/origination/kazoo"
	"trunkline/origination/pbx"
	"trunkline/recording"
	"trunkline/stats"
	"trunkline/telephony/number"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
	"trunkline/webhook"
)

// Settings has all settings of the process. A field's yaml tags make its key
// (kafka.topic_prefix), its variable (TRUNKLINE_KAFKA_TOPIC_PREFIX) and its flag
// (--kafka.topic_prefix). The comment above a field or group names the package that
// reads it.
type Settings struct {
	// Read by app.
	Listen        string        `yaml:"listen" doc:"public listener, host:port"`
	MetricsListen string        `yaml:"metrics_listen" doc:"plain HTTP listener of /metrics, /livez, /readyz and, with debug.pprof, /debug/pprof/, host:port"`
	DataDir       string        `yaml:"data_dir" doc:"directory of everything that is stored on this machine"`
	DiskMinFree   setting.Bytes `yaml:"disk_min_free" doc:"minimum free space on the disk of data_dir; below it the server does not start and recordings are refused; on a disk smaller than 50 times this value the minimum is 2 % of the disk; 0: no minimum"`
	Roles         []string      `yaml:"roles" doc:"parts of the program that this process runs"`
	DrainTimeout  time.Duration `yaml:"drain_timeout" doc:"how long a shutdown may take"`
	DrainDelay    time.Duration `yaml:"drain_delay" doc:"how long a node that shuts down still takes new connections while /readyz already fails; behind a balancer that checks /readyz longer than the balancer needs to notice"`

	API api.Settings `yaml:",inline"`

	MasterKeys masterkey.Settings `yaml:",inline"`

	// Read by app, which seeds the directory with them (identity.Directory.Seed, SeedDemo).
	DirectoryFile string         `yaml:"directory_file" file:"text" doc:"directory.yaml with the accounts and users of the first start"`
	DemoPassword  setting.Secret `yaml:"demo_password" doc:"password of the demo users, which the first start creates; empty: no demo users"`

	Log         Log                      `yaml:"log"`
	Debug       Debug                    `yaml:"debug"`
	TLS         TLS                      `yaml:"tls"`
	Kafka       Kafka                    `yaml:"kafka"`
	Redis       redisclient.Settings     `yaml:"redis"`
	Database    sqldb.Settings           `yaml:"database"`
	Recordings  recording.Settings       `yaml:"recordings"`
	CDR         cdrindex.Settings        `yaml:"cdr"`
	Stats       stats.Settings           `yaml:"stats"`
	Numbers     number.Settings          `yaml:"numbers"`
	Origination Origination              `yaml:"origination"`
	SIP         SIP                      `yaml:"sip"`
	Auth        identity.Settings        `yaml:"auth"`
	Account     identity.AccountSettings `yaml:"account"`
	Audit       audit.Settings           `yaml:"audit"`
	Ingest      ingest.Settings          `yaml:"ingest"`
	Normalizer  normalizer.Settings      `yaml:"normalizer"`
	Feeds       []feed.Config            `yaml:"feeds" doc:"phone platforms whose live events are read"`
	Feed        feed.Settings            `yaml:"feed"`
	Fanout      fanout.Settings          `yaml:"fanout"`
	AIProvider  aiprovider.Settings      `yaml:"ai_provider"`
	Webhook     webhook.Settings         `yaml:"webhook"`
	AISession   AISession                `yaml:"aisession"`
	Tracing     tracing.Settings         `yaml:"tracing"`

	secretFiles map[string]string // of the secrets that were read from files: the file, by key
}

// SecretReader returns a function that reads the secret of a key, such as database.url, again from
// the file that it came from, or nil for a secret that did not come from a file. Connections that
// are opened later use what the file holds then, so that a new password needs no restart.
func (s *Settings) SecretReader(key string) func() (string, error) {
	file, fromFile := s.secretFiles[key]
	if !fromFile {
		return nil
	}

	return func() (string, error) {
		secret, err := readSecretFile(file)
		if err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
		return secret, nil
	}
}

// Log is read by cmd, which makes the logger.
type Log struct {
	Level  string `yaml:"level" doc:"lowest level that is logged: debug, info, warn or error"`
	Format string `yaml:"format" doc:"text or json"`
}

// Debug is read by app.
type Debug struct {
	PProf bool `yaml:"pprof" doc:"serve /debug/pprof/ on metrics_listen: it shows memory and code of the process, and slows it while it profiles"`
}

// TLS is the TLS of the public listener, read by app.
type TLS struct {
	Mode     string `yaml:"mode" doc:"auto (self-signed unless a certificate is set), files, or off behind a proxy"`
	CertFile string `yaml:"cert_file" file:"certificate" doc:"certificate chain, PEM; read again when it changes"`
	KeyFile  string `yaml:"key_file" file:"key" doc:"private key of cert_file, PEM"`
}

// Kafka composes the settings of the cluster and of the embedded broker.
type Kafka struct {
	kafka.Settings `yaml:",inline"`
	Embedded       embedded.Settings `yaml:",inline"`
}

// Origination composes the settings of click to call and of its drivers.
type Origination struct {
	origination.Settings `yaml:",inline"`
	Asterisk             asterisk.Settings   `yaml:"asterisk"`
	FreeSWITCH           freeswitch.Settings `yaml:"freeswitch"`
	Kazoo                kazoo.Settings      `yaml:"kazoo"`
}

// SIP composes the settings of the SIP server, the media ports and the calls.
type SIP struct {
	Server sip.Settings `yaml:",inline"`
	Media  rtp.Settings `yaml:",inline"`
	Calls  pbx.Settings `yaml:",inline"`
}

// AISession composes the settings of AI sessions.
type AISession struct {
	Sessions    aisession.Settings   `yaml:",inline"`
	AudioSocket audiosocket.Settings `yaml:",inline"`
}

// Roles that a process can have.
const (
	RoleIngest      = "ingest"
	RoleNormalizer  = "normalizer"
	RoleFanout      = "fanout"
	RoleCDRIndex    = "cdrindex"
	RoleStats       = "stats"
	RoleOrigination = "origination"
	RoleAISession   = "aisession"
	RoleAPI         = "api"
)

// AllRoles lists every role.
func AllRoles() []string {
	return []string{RoleIngest, RoleNormalizer, RoleFanout, RoleCDRIndex, RoleStats, RoleOrigination, RoleAISession,
		RoleAPI}
}

// Default returns the default settings.
func Default() *Settings {
	return &Settings{
		Listen:        ":9443",
		MetricsListen: "127.0.0.1:9464",
		DataDir:       "data",
		DiskMinFree:   256 << 20,
		Roles:         AllRoles(),
		DrainTimeout:  20 * time.Second,
		Log:           Log{Level: "info", Format: "text"},
		TLS:           TLS{Mode: "auto"},
		Kafka:         Kafka{Settings: kafka.DefaultSettings(), Embedded: embedded.DefaultSettings()},
		Redis:         redisclient.DefaultSettings(),
		Origination: Origination{Settings: origination.DefaultSettings(), Asterisk: asterisk.DefaultSettings(),
			FreeSWITCH: freeswitch.DefaultSettings()},
		SIP:        SIP{Server: sip.DefaultSettings(), Media: rtp.DefaultSettings(), Calls: pbx.DefaultSettings()},
		AISession:  AISession{Sessions: aisession.DefaultSettings(), AudioSocket: audiosocket.DefaultSettings()},
		Auth:       identity.DefaultSettings(),
		Account:    identity.DefaultAccountSettings(),
		Audit:      audit.DefaultSettings(),
		Recordings: recording.DefaultSettings(),
		Ingest:     ingest.DefaultSettings(),
		Feed:       feed.DefaultSettings(),
		Fanout:     fanout.DefaultSettings(),
		Stats:      stats.DefaultSettings(),
		Webhook:    webhook.DefaultSettings(),
		Tracing:    tracing.DefaultSettings(),
	}
}

// SelfSigned returns the files of the certificate that is generated if none is
// configured.
func (s *Settings) SelfSigned() (certFile, keyFile string) {
	return filepath.Join(s.DataDir, "tls", "cert.pem"), filepath.Join(s.DataDir, "tls", "key.pem")
}
