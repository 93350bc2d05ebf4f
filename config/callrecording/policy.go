package callrecording

import (
	"fmt"
	"slices"

	"trunkline/internal/fault"
)

// Mode says which calls are recorded.
type Mode string

// The modes.
const (
	ModeOff      Mode = "off"       // no call is recorded, not even on demand
	ModeOnDemand Mode = "on_demand" // those that somebody starts a recording of
	ModeAll      Mode = "all"       // all, from the moment they are connected
)

// Modes lists the modes.
func Modes() []string { return []string{string(ModeOff), string(ModeOnDemand), string(ModeAll)} }

// Bounds of a policy.
const (
	maxQueues        = 1000
	maxQueueIDBytes  = 255
	maxRetentionDays = 36_500
)

// Policy says which calls of an account are recorded. The zero value records none and keeps what
// there is.
type Policy struct {
	Mode          Mode             `json:"mode"`
	OnlyQueues    []string         `json:"queues,omitempty"` // whose calls Mode is for, no others; empty: all calls
	Announce      bool             `json:"announce,omitempty"`
	Announcement  string           `json:"announcement,omitempty"`   // id of From's recording that is heard; "": a tone
	RetentionDays int64            `json:"retention_days,omitempty"` // 0: kept for good
	QueueDays     []QueueRetention `json:"queue_retention,omitempty"`

	PolicyAccount string `json:"-"` // the account that has the policy: this one, or one above it
}

// QueueRetention is how long the recordings of one queue are kept.
type QueueRetention struct {
	QueueID       string `json:"queue_id"`
	RetentionDays int64  `json:"retention_days"` // 0: kept for good
}

// ModeOf returns the mode for a call of the queue ("": none).
func (p *Policy) ModeOf(queue string) Mode {
	if len(p.OnlyQueues) > 0 && !slices.Contains(p.OnlyQueues, queue) || p.Mode == "" {
		return ModeOff
	}
	return p.Mode
}

// ExpiresAt returns when a recording of the queue ("": none) that was stored at storedAt is deleted; 0:
// never. Both are Unix seconds.
func (p *Policy) ExpiresAt(storedAt int64, queue string) int64 {
	days := p.RetentionDays
	for _, q := range p.QueueDays {
		if q.QueueID == queue && queue != "" {
			days = q.RetentionDays
		}
	}

	if days == 0 {
		return 0
	}

	return storedAt + days*24*60*60
}

// check returns fault.KindInvalid with every invalid field.
func (p *Policy) check() error {
	var faults []fault.Field

	add := func(field, code, message string) {
		faults = append(faults, fault.Field{Field: field, Code: code, Message: field + " " + message})
	}
	checkDays := func(field string, days int64) {
		if days < 0 || days > maxRetentionDays {
			add(field, "out_of_range", fmt.Sprintf("must be from 0 (kept for good) to %d", maxRetentionDays))
		}
	}

	if !slices.Contains(Modes(), string(p.Mode)) {
		add("mode", "unsupported", "must be off, on_demand or all")
	}
	if len(p.OnlyQueues) > maxQueues {
		add("queues", "too_many", "must be at most 1,000")
	}
	if len(p.QueueDays) > maxQueues {
		add("queue_retention", "too_many", "must be at most 1,000")
	}

	for i, queue := range p.OnlyQueues {
		if queue == "" || len(queue) > maxQueueIDBytes {
			add(fmt.Sprintf("queues[%d]", i), "invalid", "must have 1 to 255 bytes")
		}
	}

	if p.Announcement != "" && !p.Announce {
		add("announcement", "invalid", "needs announce: true")
	}

	checkDays("retention_days", p.RetentionDays)

	seen := make(map[string]bool, len(p.QueueDays))
	for i, q := range p.QueueDays {
		if q.QueueID == "" || len(q.QueueID) > maxQueueIDBytes {
			add(fmt.Sprintf("queue_retention[%d].queue_id", i), "invalid", "must have 1 to 255 bytes")
		}
		if seen[q.QueueID] {
			add(fmt.Sprintf("queue_retention[%d].queue_id", i), "duplicate", "is in the list already")
		}

		seen[q.QueueID] = true
		checkDays(fmt.Sprintf("queue_retention[%d].retention_days", i), q.RetentionDays)
	}

	if len(faults) > 0 {
		return fault.Invalid("Invalid recording policy", faults...)
	}

	return nil
}
