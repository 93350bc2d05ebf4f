// Package requests sends requests to a server, at a rate or as fast as a number of connections
// allows, and counts the responses.
//
// With a rate the loop is open: request number n is due at n/rate whether or not earlier ones
// have completed, and its latency counts from its due time. A server that stalls for a second
// therefore delays all requests due in that second, not one. Behind returns the number of due
// requests that could not be sent because all connections were busy. Without a rate the loop is
// closed: each connection sends its next request after a response, and latency counts from
// sending.
//
// It interprets only the status codes of HTTP: the caller defines the operations and their
// expected responses.
//
// Goroutines: Connections while Run runs; Run returns when all have ended. Nothing is queued.
package requests
