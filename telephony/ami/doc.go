// Package ami is a client of the Asterisk manager interface: it logs in, sends actions, and receives
// events in the order in which Asterisk sent them.
//
// It has no knowledge of calls and does not reconnect. A Conn that has ended stays ended and Err
// returns the reason; the caller dials again and queries the state that it missed.
//
// # Responses and events
//
// Asterisk answers actions out of order, so each action has an ActionID and its response goes to the
// waiter with that id. The waiter of a list action also collects the events with its id, up to the one
// whose EventList is Complete. All other events, including those with the id of a completed action
// (OriginateResponse), go to one queue, which the caller empties with Take when Arrived has a token.
// Events are not handled in separate goroutines.
//
// # Values with line breaks
//
// Asterisk escapes most external texts, but not all: a caller's number may contain line breaks, and the
// text after them looks like keys or messages of Asterisk. Message.Get returns the first occurrence of
// a key. The first key alone determines the kind of a message. A message that begins with neither Event
// nor Response is the second part of a split message and is delivered as an event without a name. The
// ids that this package gives to actions cannot be guessed, so that such a message cannot be a response
// to an action. Invalid UTF-8 is replaced by U+FFFD.
//
// # Goroutines
//
// Each Conn has one reader. It ends with the connection: when the peer closes it, after malformed
// input, when Asterisk answers none of maxPings pings, or on Close, which waits for it. The reader sends a
// ping when nothing has arrived for PingInterval.
//
// # Limits
//
// A message above MaxMessage ends the connection with ErrTooLarge, events above QueueEvents or
// QueueBytes with ErrQueueFull. Larger queues would only move the loss to Asterisk, which closes the
// connection of a client that does not read. An action above MaxPending is refused, and a list above
// MaxList fails.
//
// # Lock order
//
// Conn.writing, then Conn.mu.
package ami
