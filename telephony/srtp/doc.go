// Package srtp has the keys and the contexts of encrypted media (SRTP, RFC 3711) whose keys are
// exchanged in session descriptions (SDES, RFC 4568). Ciphers and packet processing are pion/srtp's.
//
// It has no signalling, no sockets, no SRTCP and no MKI. It starts no goroutines; a Sender and a Receiver
// are for one goroutine at a time. A Receiver drops replayed packets, and packets of more than maxSources
// sources, which bounds its memory.
package srtp
