package feed

import (
	"context"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// Platform connects to one phone platform.
type Platform interface {
	// Connect logs in and subscribes: every event from then on is returned by the
	// session. Returns a *Refusal where only a change of settings, here or on the
	// platform, can help.
	Connect(ctx context.Context) (Session, error)
	// Subscription lists what Connect subscribes to, in the platform's words.
	Subscription() []string
}

// Session is one connection to a platform. Read and Snapshot are called from
// different goroutines.
type Session interface {
	// Read waits for events and returns them in the order of arrival. The slice is
	// valid until the next call. An error ends the session.
	Read(ctx context.Context) ([]Event, error)
	// Snapshot asks the platform for its agents, calls and devices.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Close ends the connection.
	Close() error
}

// Acknowledger is a session whose platform keeps events until they are
// acknowledged. Such a session's events do not go through the spool: Acknowledge is
// called when Kafka has all events up to the one with that Delivery.
type Acknowledger interface {
	Acknowledge(ctx context.Context, delivery uint64) error
}

// Event is one event of a platform on its way to a raw topic.
type Event struct {
	Topic   string         // event.TopicRaw or event.TopicCDRRaw
	Format  string         // the name of a format of package format/…
	Value   []byte         // one JSON object, as the format reads it; nil: nothing to store, only Hole and Resync count
	Headers []kafka.Header // beside those of every record, such as event.HeaderTimeZone

	// Account is the account's id. "" is unknown: the record becomes a dead letter,
	// and Names has the names that were looked up.
	Account string
	Names   []string

	// Hole is the number of events that the platform's sequence shows missing
	// before this one; above 0 begins a resync.
	Hole uint64
	// Resync requests a resync after this event: the platform has reloaded its
	// configuration, say.
	Resync bool
	// Identity is the same on every connection to the platform. The zero value: the
	// platform numbers nothing.
	Identity Identity
	// Subjects are the ids of the agents, calls and devices that the event is
	// about, as in its facts.
	Subjects []string
	// Delivery is the platform's number of the event for Acknowledge.
	Delivery uint64
}

// Identity names an event in its platform: the run of the switch (Core-UUID of
// FreeSWITCH) and the event's number in it. A session returns at most one event
// of a topic with an identity: the normalizer drops others.
type Identity = event.Identity

// Snapshot is a platform's current state. Kinds lists the kinds of objects that the
// snapshot is complete in: an object of these kinds that the state has and the snapshot has
// not, has ended.
type Snapshot struct {
	Kinds   []state.Kind
	Objects []Object
	// Unsettled are the ids of objects with an event so shortly before the request
	// that the platform's own tables may not have it yet. They are treated as the
	// Subjects of events that were read meanwhile.
	Unsettled []string
	// Notes say what could not be asked and why, in the words of the platform's own
	// settings, for "feed check".
	Notes []string
}

// Object is one agent, call or device. Facts are those of an event that would
// bring the state to it: State, and the ids and names that the platform reports.
// Facts.Name is chosen by the comparison. Facts.State "" says only that the object
// is there; Facts.TimestampMS is when it entered its state, 0 where the platform
// does not tell.
type Object struct {
	Account string // "": the platform does not tell; the entry of any account with the same id is it
	Kind    state.Kind
	ID      string
	Facts   event.Facts
	Queues  []string // agent: the queues it is a member of; nil: not asked
}

// Accounts maps the names that a platform gives its tenants to accounts.
type Accounts interface {
	// Account returns the account of the first name that maps to one: by the feed's
	// own account or rules, else by the directory's domains. "" where none does.
	Account(names ...string) string
}

// Refusal is an error that retrying does not cure.
type Refusal struct {
	Err    error
	Advice string // what to change, in the words of the platform's own settings
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }
