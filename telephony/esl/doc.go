// Package esl is a client of FreeSWITCH's event socket (mod_event_socket) in inbound mode: it logs in,
// sends commands, and receives events in the order in which the switch sent them.
//
// It has no knowledge of calls and does not reconnect. A Conn that has ended stays ended and Err
// returns the reason; the caller dials again and queries the state that it missed.
//
// # Replies and events
//
// The switch answers commands in the order in which it received them, and replies have no number. A
// command is therefore added to a queue of waiters as it is written, and each reply goes to the head of
// that queue. A waiter whose caller has stopped waiting stays in the queue: its late reply is dropped
// and cannot be mistaken for another one.
//
// Events go to one queue, which the caller empties with Take when Arrived has a token. Events are not
// handled in separate goroutines.
//
// # Goroutines
//
// Each Conn has one reader. It ends with the connection: when the peer closes it, after malformed
// input, or on Close, which waits for it.
//
// # Limits
//
// A message above MaxMessage ends the connection with ErrTooLarge, events above QueueEvents or
// QueueBytes with ErrQueueFull. Larger queues would only move the loss to the switch, which drops events
// for a client that does not read, and then the listener. A command above MaxPending is refused.
//
// # Lock order
//
// Conn.writing, then Conn.mu.
package esl
