// Package g711 encodes and decodes the two laws of ITU-T G.711, mu-law (PCMU) and
// A-law (PCMA), on 16-bit samples at 8 kHz, and converts one law to the other.
//
// It computes as ITU-T G.191 does: a negative sample is inverted, not negated, so
// that its code depends on its upper 14 bits (mu-law) or 12 bits (A-law) alone.
// Everything is looked up in tables that are made when the program starts.
//
// No goroutines, no locks; nothing changes after the start.
package g711
