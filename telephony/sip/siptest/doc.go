// Package siptest has a phone for tests: a user agent on one UDP socket that writes SIP as text and
// shares only the stack's parser with telephony/sip. It can also send invalid messages.
//
// A Phone has two goroutines, for signalling and for media. Close ends both.
package siptest
