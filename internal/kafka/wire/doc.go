// Package wire encodes and decodes what kafka-go and kmsg do not, or too slowly:
// record batches (format version 2) and the primitive types of the requests under
// load. It has no connections and no goroutines.
//
// All decoders take bytes of a broker, which may be damaged: they allocate no more than
// the bytes that they received justify, and report damage as an error.
package wire
