package recording

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/encryption"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
	"trunkline/recording/envelope"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Config holds the package's settings.
type Config struct {
	MaxBytes int64 // of audio in one recording; 0: no limit
}

// Validate returns what is invalid in the configuration.
func (c Config) Validate() error {
	if c.MaxBytes < 0 {
		return errors.New("recordings: the largest size is negative")
	}
	return nil
}

// Keys returns the accounts' keys.
type Keys interface {
	Current(ctx context.Context, accountID string) (encryption.Sealing, error)
	Key(ctx context.Context, accountID string, version int64) (encryption.Key, error)
}

// Publisher sends one of our own events (format trunkline.event) of an account
// to the channel; nil means that it is durable.
type Publisher interface {
	Publish(ctx context.Context, accountID string, data []byte) error
}

// Deps are the dependencies of a Service.
type Deps struct {
	DB        *sqldb.DB
	Store     Store
	Keys      Keys
	Publisher Publisher
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Tracer    *tracing.Tracer // nil: tracing is off
}

// Service keeps recordings. It is safe for concurrent use.
type Service struct {
	cfg     Config
	rows    rows
	backend Store
	keys    Keys
	publish Publisher
	roots   *envelope.Roots
	metrics *metrics
	log     *slog.Logger
	tracer  *tracing.Tracer
	stored  chan struct{} // wakes the announcer; holds at most one
}

// rootCache is the number of derived roots kept in memory: 25 KB for all.
const rootCache = 256

// New brings the tables up to date.
func New(ctx context.Context, cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := deps.DB.Migrate(ctx, "recording", files); err != nil {
		return nil, err
	}
	roots, err := envelope.NewRoots(rootCache)
	if err != nil {
		return nil, err
	}
	return &Service{
		cfg: cfg, rows: rows{deps.DB}, backend: deps.Store, keys: deps.Keys, publish: deps.Publisher, roots: roots,
		metrics: newMetrics(deps.Metrics), log: deps.Log, tracer: deps.Tracer, stored: make(chan struct{}, 1),
	}, nil
}

// Metadata describes a stored recording. Of
// a plain one the key's fields, algorithm and salt are absent.
type Metadata struct {
	RecordingID string `json:"recording_id"`
	AccountID   string `json:"account_id"`
	Encrypted   bool   `json:"encrypted"`
	KeyID       string `json:"key_id,omitempty"`
	KeyVersion  int64  `json:"key_version,omitempty"`
	Algorithm   string `json:"algorithm,omitempty"`
	Salt        string `json:"salt,omitempty"` // the recording's own, base64
	Size        int64  `json:"size"`           // bytes of audio
	StoredSize  int64  `json:"stored_size"`    // bytes in the store
	Digest      string `json:"digest"`         // of the audio: sha256: and hex
	ContentType string `json:"content_type"`   // as it was sent
	CreatedAt   int64  `json:"created_at"`     // Unix seconds
}
