// Package aiprotocol encodes and decodes the messages that Trunkline and an AI
// provider exchange over a WebSocket, including the extensions that a provider
// can opt in to (docs/ai.md).
//
// If this is your first change, read message.go, which has the messages.
// encode.go encodes those of the service, decode.go decodes both.
//
//	to the provider    start, media*, dtmf*, hangup     extensions: mark, cleared, transfer
//	from the provider  media*                           extensions: clear, mark, hangup, transfer, dtmf
//	                   transcript*, of a provider that listens
//
// Encoding appends to a slice of the caller's, and decoding uses the decoder's
// own memory, so that an audio frame allocates nothing in either direction.
//
// The package has no sockets, clocks or audio codecs: the order of messages and
// the meaning of a payload are the caller's concern. It has no goroutines and
// no locks; a Decoder is for one goroutine at a time.
package aiprotocol
