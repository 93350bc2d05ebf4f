// Package jsonscan reads a few members of a JSON object without decoding the rest: one
// pass validates the whole value and returns the raw values of the requested keys.
//
// It accepts the same input as encoding/json, except invalid UTF-8, nesting over
// MaxDepth, and a top-level value that is not an object. Strings decode as in
// encoding/json, and the last value of a repeated key wins. It copies nothing: values
// are slices of the input. No goroutines, no state; safe for any input.
package jsonscan
