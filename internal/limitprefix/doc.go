// Package limitprefix returns the address prefixes under which limits count a client: a rate, connections, failed
// logins. A client with IPv6 has a whole network of addresses. The package has no state and starts no goroutine.
package limitprefix
