package recording

import (
	"context"
	"embed"
	"log/slog"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/config/encryption"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
	"trunkline/recording/envelope"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Keys returns the accounts' keys.
type Keys interface {
	// Current returns the Sealing for a new recording of the account, the zero Sealing if the
	// account was never configured. The recording may be stored only if the error is nil and either
	// Enabled is false or the key is complete.
	Current(ctx context.Context, accountID string) (encryption.Sealing, error)
	// Key returns one version of the key, to open recordings that were sealed under it.
	Key(ctx context.Context, accountID string, version int64) (encryption.Key, error)
}

// Publisher publishes one of Trunkline's own events (format trunkline.event) of an
// account. A nil error means that it is durable.
type Publisher interface {
	Publish(ctx context.Context, accountID string, data []byte) error
}

// Deps are the dependencies of a Service.
type Deps struct {
	DB        *sqldb.DB
	Store     Store
	LiveDir   string // folder of recordings of calls in progress; "": none are recorded
	Keys      Keys
	Publisher Publisher
	Policies  Policies    // nil: recordings are kept for good
	Calls     CallRecords // nil: recordings know what their uploads say
	Audit     *audit.Log
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Tracer    *tracing.Tracer // nil if tracing is off
	CheckDisk func() error    // returns an error if there is too little free space for uploads; nil for no check
}

// Service stores recordings. It is safe for concurrent use.
type Service struct {
	settings       Settings
	checkFreeSpace func() error // Deps.CheckDisk
	rows           rows
	liveDir        string // folder of recordings in progress; "" without one
	seals          *seals
	objects        *objects
	publisher      Publisher
	policies       Policies
	calls          CallRecords // nil without the index of call records
	audit          *audit.Log
	usage          *usageCache
	metrics        *metrics
	log            *slog.Logger
	tracer         *tracing.Tracer
	wakeAnnouncer  chan struct{} // wakes Run to announce recordings; capacity 1
	// has an element for each recording in progress that is written; capacity: how many may
	writers chan struct{}
	openers chan struct{} // the same of recordings that begin
}

// maxCachedRoots is the number of derived roots kept in memory: 25 KB for all.
const maxCachedRoots = 256

// New migrates the tables.
func New(ctx context.Context, settings Settings, deps Deps) (*Service, error) {
	if err := setting.Validate("recordings", settings); err != nil {
		return nil, err
	}
	if err := deps.DB.Migrate(ctx, "recording", migrations); err != nil {
		return nil, err
	}

	roots, err := envelope.NewRootCache(maxCachedRoots)
	if err != nil {
		return nil, err
	}

	checkFreeSpace := deps.CheckDisk
	if checkFreeSpace == nil {
		checkFreeSpace = func() error { return nil }
	}

	rows, metrics, seals := rows{deps.DB, deps.Audit}, newMetrics(deps.Metrics), &seals{deps.Keys, roots}
	halfOfCPUs := max(1, runtime.GOMAXPROCS(0)/2)

	return &Service{
		settings: settings, checkFreeSpace: checkFreeSpace, rows: rows, liveDir: deps.LiveDir,
		seals: seals, objects: &objects{rows: rows, store: deps.Store, seals: seals, metrics: metrics, log: deps.Log,
			encoders: make(chan struct{}, halfOfCPUs)},
		usage:     &usageCache{rows: rows, max: int64(settings.MaxAccountBytes)},
		publisher: deps.Publisher, policies: deps.Policies, calls: deps.Calls, audit: deps.Audit,
		metrics: metrics, log: deps.Log, tracer: deps.Tracer, wakeAnnouncer: make(chan struct{}, 1),
		writers: make(chan struct{}, halfOfCPUs), openers: make(chan struct{}, halfOfCPUs),
	}, nil
}

// auditTarget returns a recording as the target of an audit entry.
func auditTarget(recordingID string) string { return "recording:" + recordingID }

// Metadata describes a stored recording. A plain one has no key fields, algorithm or salt.
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
	ContentType string `json:"content_type"`   // of the upload
	CreatedAt   int64  `json:"created_at"`     // Unix seconds

	Call
	Pauses    []Pause `json:"pauses,omitempty"`
	ExpiresAt int64   `json:"expires_at,omitempty"` // Unix seconds; 0: it is kept for good
	Hold      *Hold   `json:"hold,omitempty"`       // nil: it may be deleted
}

// Hold is a legal hold: nothing deletes a recording that has one.
type Hold struct {
	Reason string `json:"reason"`
	Since  int64  `json:"since"` // Unix seconds
}
