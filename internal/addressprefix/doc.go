// Package addressprefix returns the address prefixes under which limits count a client. It
// has no state and starts no goroutine.
package addressprefix
