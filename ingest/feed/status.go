package feed

// State is the state of a feed on a node.
type State string

// The states of a feed.
const (
	StateConnected  State = "connected"
	StateConnecting State = "connecting"
	StateRefused    State = "refused"    // only a change of settings, here or on the platform, can resolve it
	StateStandby    State = "standby"    // other nodes read the platform
	StateSpoolFull  State = "spool_full" // reading has stopped
)

// Status is the state of a feed on a node. Times are in Unix seconds. Counts are since the start of the
// process.
type Status struct {
	Name                string  `json:"name"`
	Kind                string  `json:"kind"`
	Node                string  `json:"node"`
	State               State   `json:"state"`
	Error               string  `json:"error,omitempty"` // of the state, or of the last resync
	ConnectedAt         int64   `json:"connected_at,omitempty"`
	LastEventAt         int64   `json:"last_event_at,omitempty"`
	Events              uint64  `json:"events"`
	SpoolBytes          int64   `json:"spool_bytes"`
	OldestUnsentSeconds float64 `json:"oldest_unsent_seconds"`
	Holes               uint64  `json:"holes"`
	ResyncDifferences   uint64  `json:"resync_differences"`
	Dropped             uint64  `json:"dropped"`
}
