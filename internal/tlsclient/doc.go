// Package tlsclient has the settings of TLS to a server that Trunkline is a
// client of (Kafka, Redis, a telephony platform), makes a tls.Config of them,
// and secures connections with it. A Client reads the files again after one of
// them has changed, when the next connection is made; it starts no goroutine.
package tlsclient
