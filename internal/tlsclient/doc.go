// Package tlsclient has the settings of TLS to a server that Trunkline is a
// client of (Kafka, Redis), and makes a tls.Config of them. It keeps no state
// and starts no goroutine.
package tlsclient
