package webhook

import (
	"time"

	"trunkline/identity"
	"trunkline/internal/entitytag"
)

// Format is the form of a request's body.
type Format string

// The formats.
const (
	FormatTrunkline   Format = "trunkline"   // the channel's message, byte for byte
	FormatCloudEvents Format = "cloudevents" // CloudEvents 1.0, structured mode, with the message as data
)

// Status is the state of a webhook's delivery.
type Status string

// The states.
const (
	StatusActive  Status = "active"
	StatusFailing Status = "failing" // the last attempt failed; there will be another
	StatusPaused  Status = "paused"  // there is none before a retry
)

// Webhook is one webhook as the API shows it, without its secret.
type Webhook struct {
	ID        string
	AccountID string
	URL       string
	Filters   identity.Filter
	Format    Format
	CreatedAt time.Time
	UpdatedAt time.Time

	Status    Status
	Failures  int       // in a row
	LastError string    // "": none since the last retry
	FailedAt  time.Time // of LastError
	NextTryAt time.Time // of StatusFailing
	PausedAt  time.Time // of StatusPaused
}

// ETag returns the entity tag of what an administrator has set, the secret included.
// The state of the delivery does not change it.
func (w Webhook) ETag() string { return entitytag.Of(w.ID, w.UpdatedAt.UnixMilli()) }

// Config is what an administrator sets.
type Config struct {
	URL     string
	Filters identity.Filter
	Format  Format // "": FormatTrunkline
	Secret  string // "": made on creation, kept on update
}
