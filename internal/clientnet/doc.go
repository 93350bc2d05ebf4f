// Package clientnet groups client addresses for limits that count by address. It
// has no state and starts no goroutine.
package clientnet
