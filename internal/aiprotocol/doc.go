// Package aiprotocol is the messages that Trunkline and an AI provider exchange
// over a WebSocket (specification, "AI provider events"), both ways, and the
// extras that a provider can opt in to (contract, "D. AI provider").
//
// If this is your first change, read message.go: what there is to say. append.go
// writes the messages of the service, request.go those of a provider; decode.go
// reads both.
//
//	to the provider    start, media*, dtmf*, hangup     extras: mark, cleared, transfer
//	from the provider  media*                           extras: clear, mark, hangup, transfer, dtmf
//
// Writing appends to a slice of the caller's and reading decodes into the
// decoder's own memory, so that a frame of audio costs no allocation either way.
//
// It refuses to know about sockets, time or audio: what order messages come in,
// and what a payload sounds like, is for those who use it. No goroutines, no
// locks; a Decoder belongs to one goroutine.
package aiprotocol
