// Package eventconn is the common part of the clients of FreeSWITCH's event socket (telephony/esl) and
// of Asterisk's manager interface (telephony/ami): connecting, one reader, a bounded queue of events,
// waiting for a response, and the end of a connection with its reason.
//
// A protocol's connection embeds Conn. Operations for the protocol only are functions of this package
// instead of methods, so that the connection does not export them to its users.
//
// Each Conn has one reader (Start), which ends with the connection: when the peer closes it, when a
// message cannot be handled, or on Close, which waits for it. Events above the queue's limits end the
// connection.
package eventconn
