package feed

import (
	"context"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// Platform connects to one phone platform.
type Platform interface {
	// Connect logs in and subscribes: the session returns every event from then on. The error is a
	// *Refusal if only a change of settings, here or on the platform, can resolve it.
	Connect(ctx context.Context) (Session, error)
	// Subscription lists the events that Connect subscribes to, in the platform's terms.
	Subscription() []string
}

// Session is one connection to a platform. Read and Snapshot are called from
// different goroutines.
type Session interface {
	// Read waits for events and returns them in the order of arrival. The slice is
	// valid until the next call. An error ends the session.
	Read(ctx context.Context) ([]Event, error)
	// Snapshot requests the platform's agents, calls and devices.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Close ends the connection.
	Close() error
}

// Acknowledger is a session whose platform keeps events until they are acknowledged. Such a session's
// events are not written to the spool. Acknowledge is called when Kafka has all events up to the one
// with that Delivery.
type Acknowledger interface {
	Acknowledge(ctx context.Context, delivery uint64) error
}

// Event is one event of a platform on its way to a raw topic.
type Event struct {
	Topic   string         // event.TopicRaw or event.TopicCDRRaw
	Format  string         // the name of a format of package format/…
	Value   []byte         // one JSON object in the format; nil stores nothing, only Hole and Resync are used
	Headers []kafka.Header // besides those of every record, such as event.HeaderTimeZone

	// Account is the account's id. If it is "", the account is unknown, the record becomes a dead
	// letter, and Names has the names that were looked up.
	Account string
	Names   []string

	// Hole is the number of events that are missing before this one in the platform's sequence. A Hole
	// above 0 starts a resync.
	Hole uint64
	// Resync requests a resync after this event, for example because the platform has reloaded its
	// configuration.
	Resync bool
	// Identity is the same on every connection to the platform. It is zero if the platform does not
	// number its events.
	Identity Identity
	// Subjects are the ids of the event's agents, calls and devices, as in its facts.
	Subjects []string
	// Delivery is the platform's number of the event for Acknowledge.
	Delivery uint64
}

// Identity identifies an event of a platform: the run of the switch (Core-UUID of FreeSWITCH) and the
// event's number in it. A session returns at most one event of a topic with an identity: the normalizer
// drops others.
type Identity = event.Identity

// Snapshot is a platform's current state.
type Snapshot struct {
	// CompleteKinds are the kinds of which Objects has all: an object of such a kind that is in the state but not
	// in the snapshot has ended.
	CompleteKinds []state.Kind
	Objects       []Object
	// RecentlyChanged are the ids of objects with an event so shortly before the request that the platform's
	// tables may not include it yet. They are treated like the Subjects of events that arrive during
	// the request.
	RecentlyChanged []string
	// Notes name the queries that failed and the reason, in terms of the platform's settings, for "feed
	// check".
	Notes []string
}

// Object is one agent, call or device. Facts are those of an event after which the state equals the
// object: State, and the ids and names that the platform reports. The comparison sets Facts.Name. A
// Facts.State of "" means only that the object exists. Facts.TimestampMS is when the object entered its
// state, 0 if the platform does not report it.
type Object struct {
	Account string // "" if the platform does not report it: the entry with the same id in any account is used
	Kind    state.Kind
	ID      string
	Facts   event.Facts
	Queues  []string // of an agent: its queues; nil if they were not requested

	// Members are what the platform reports of an agent's memberships and phone, if it reports
	// it for each queue; Facts.State is not used then.
	Members []Member `json:",omitempty"`
	// LastCallMS is when the last call of an agent ended, Unix milliseconds, 0 if the platform does not
	// report it.
	LastCallMS int64 `json:",omitempty"`
	// Contacts are the registrations of a device; nil if the platform does not name them.
	Contacts []string `json:",omitempty"`
	// Leg is set if a call is a leg, which goes on when it leaves its queue.
	Leg bool `json:",omitempty"`
	// NoQueue is set if the platform shows that a leg is in no queue.
	NoQueue bool `json:",omitempty"`
}

// Member is what a platform reports of an agent's membership in a queue.
type Member struct {
	Queue   string
	SinceMS int64 // Unix milliseconds since which Report holds; 0: unknown
	Report  *event.AgentReport
}

// Accounts maps the names that a platform gives its tenants to accounts.
type Accounts interface {
	// Account returns the account of the first name that the feed's own account or rules, or else the
	// directory's domains, map to one; "" if there is none.
	Account(names ...string) string
}

// Refusal is an error of a platform that only a change of settings, here or there, can resolve.
type Refusal struct {
	Err    error
	Advice string // the change to make, in terms of the platform's settings
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }
