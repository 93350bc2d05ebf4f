// Package tlsclient provides the TLS settings for servers to which Trunkline connects
// (Kafka, Redis, a telephony platform), creates a tls.Config from them, and secures
// connections. After a file has changed, a Client reloads the files at the next
// connection; it starts no goroutine.
package tlsclient
