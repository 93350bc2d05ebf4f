// Package g711 encodes and decodes the two laws of ITU-T G.711, mu-law (PCMU) and
// A-law (PCMA), on 16-bit samples at 8 kHz, and converts one law to the other.
//
// It gives the results of ITU-T G.191: a negative sample is inverted, not negated, so that its code
// depends only on its upper 14 bits (mu-law) or 12 bits (A-law). All conversions use tables that are
// computed when the program starts.
//
// The package has no goroutines and no locks. The tables do not change.
package g711
