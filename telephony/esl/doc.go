// Package esl is a client of FreeSWITCH's event socket (mod_event_socket),
// inbound mode: log in, send commands, receive events in the order in which the
// switch wrote them.
//
// It refuses to know what a call is, to reconnect, and to hide a broken
// connection: a Conn that ended stays ended, Err says why, and the caller dials
// again and looks up what it missed.
//
// # The way of a reply and of an event
//
// The switch answers commands in the order in which it got them, and replies
// carry no number. So a command joins the queue of waiters while it is being
// written, and each reply goes to the head of that queue. A waiter that gave up
// keeps its place: its late reply is dropped and can never become another's.
//
// Events go to one queue, which the caller empties with Take whenever Arrived
// says so. No event is handled in a goroutine of its own.
//
// # Goroutines and who stops them
//
// One reader for each Conn. It ends with the connection: when the peer closes,
// when something malformed arrives, or at Close, which waits for it.
//
// # When it is full
//
// A message over MaxMessage, events over QueueEvents or QueueBytes, commands
// over MaxPending. The first two end the connection (ErrTooLarge, ErrSlow):
// growing would only move the loss to the switch, which drops events, and then
// the listener, of a client that does not read. The third refuses the command.
//
// # Lock order
//
// Conn.writing, then Conn.mu.
package esl
