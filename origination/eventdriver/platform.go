package eventdriver

import (
	"context"

	"trunkline/origination"
)

// Conn is a logged-in connection that queues events.
type Conn interface {
	Arrived() <-chan struct{} // has a token if events may be queued
	Done() <-chan struct{}    // closed when the connection has ended
	Err() error               // the reason of the end
	Close()                   // ends the connection; Done is closed then
}

// Platform has the commands and events of one kind of platform. C is its state of a call, K its
// connection. Its methods are called concurrently; a K is nil while there is no connection.
type Platform[C TrackedCall, K Conn] interface {
	// Connect connects, logs in and subscribes to the events of our calls.
	Connect(ctx context.Context) (K, error)
	// NewCall returns the state of a call.
	NewCall(c Call) C
	// Key returns the name that the platform's events and channels give to a call.
	Key(callID string) string
	// Prepare checks an order and waits for its turn, where the platform limits calls per second. The
	// returned function sends the order.
	Prepare(ctx context.Context, conn K, order origination.Order) (send func(context.Context, K) error, err error)
	// HangUp ends a channel. It returns nil if there is no such channel.
	HangUp(ctx context.Context, conn K, channel string) error
	// Events returns the events that have arrived, in order.
	Events(conn K) []Observation[C]
	// List returns the platform's list of channels. reason is the reason for the comparison.
	List(ctx context.Context, conn K, reason string) ([]Observation[C], error)
	// Exists reports whether the platform has one of the channels of a call that List did not have.
	Exists(ctx context.Context, conn K, channels []string) (bool, error)
	// Explain returns the kind of an error of the other methods, and advice to correct it, "" if there
	// is none.
	Explain(err error) (failure Failure, advice string)
}

// Observation is an event, or a channel in the platform's list.
type Observation[C TrackedCall] struct {
	Keys  []string            // of the calls that it may belong to: to the first one that is known
	Apply func(call C) Change // is called with Driver.mu held
}

// Change is the result of applying an Observation to a call.
type Change struct {
	Steps    []origination.State // to report, in order
	Channel  string              // an existing channel, which is hung up if the call is cancelled; "" if none
	Outdated bool                // the list lags behind the events and is ignored
}

// Failure is a kind of error of a platform.
type Failure int

// The failures.
const (
	Unanswered  Failure = iota // the platform may have received the command
	NotSent                    // it has not received it
	Refused                    // it has answered that it does not do it
	LoginDenied                // of Connect
)
