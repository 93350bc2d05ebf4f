// Package jsonscan reads a few members of a JSON object without decoding the
// rest: one pass checks the whole value and keeps, for the keys asked for, the
// bytes of their values.
//
// It accepts what encoding/json accepts, less three things: invalid UTF-8,
// nesting over MaxDepth, and a top-level value that is no object. Strings come
// out as encoding/json would decode them, and of a repeated key the last value
// counts. It copies nothing: values are slices of the input.
// No goroutines, no state; safe for any input.
package jsonscan
