// Package siptest has a phone for tests: a user agent of its own, on one UDP
// socket, that writes SIP as text and shares nothing with telephony/sip but the
// stack's parser. It can do what a phone must not, too.
//
// A Phone has two goroutines, for signalling and for media, which Close ends.
package siptest
