// Package backend opens Kafka, Redis, the database and the recordings' store
// that the settings name, or their embedded stand-ins where no address is set. What serves and what
// manages open them here, so that both find the same ones. Above it nobody
// knows which kind it got.
//
// Each opening says in one log line what it opened and what that does not
// promise; no line has a secret in it. An address that cannot work is an error;
// a server that does not answer yet is an error of its user's calls.
//
// The embedded Redis has one goroutine, its clock, which Close ends; the
// embedded broker's are its own.
package backend
