// Package aiecho is an AI provider that returns the audio and prints the messages it receives. It
// serves for a first configuration, and as an example of the provider's side of the protocol.
//
// It does not close a session because of a message outside the protocol: it prints the message
// and continues. It opens no listener: Provider is an http.Handler.
//
// Each session runs in the goroutine of its request, which reads, prints and answers; Close ends
// all of them. A session ends when a write takes longer than writeTimeout.
package aiecho
