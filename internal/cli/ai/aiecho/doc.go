// Package aiecho is an AI provider that sends the audio back and tells what it
// gets: something to point a first configuration at, and an example of the
// provider's side of the protocol.
//
// It refuses nothing that a provider has no business to refuse: what it gets
// and does not understand is reported, and the session continues. It never
// listens on its own: it is an http.Handler.
//
// Each session is worked on in its request's goroutine, which reads, tells and
// answers in turn; Close ends them all. A peer that does not read is given up
// after writeTimeout.
package aiecho
