// Package eventconn has what the clients of FreeSWITCH's event socket (telephony/esl) and of Asterisk's
// manager interface (telephony/ami) share: connecting, one reader, a bounded queue of events, waiting
// for an answer, and the end of a connection with its reason.
//
// A protocol's connection embeds Conn. What only the protocol may do with a Conn is a function of this
// package and not a method, so that the users of the protocol do not have it.
//
// Each Conn has one reader (Start), which ends with the connection: when the peer closes it, when a
// message cannot be handled, or on Close, which waits for it. Events above the queue's limits end the
// connection.
package eventconn
