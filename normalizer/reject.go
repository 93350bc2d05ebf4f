package normalizer

import "trunkline/format"

// The kinds of dead letters beside those of the formats.
const (
	TooLarge       format.Kind = "too_large"       // its message would not fit the topic
	UnknownFormat  format.Kind = "unknown_format"  // the format header names none of this topic
	UnknownAccount format.Kind = "unknown_account" // names an account that does not exist
	Unrecognised   format.Kind = "unrecognised"    // no format header, and keys that tell nothing
	NoAccount      format.Kind = "no_account"      // neither the record nor its key names one
	Internal       format.Kind = "internal"        // our own fault: normalizing it panicked, or failed maxFailures times
)

var kinds = append(format.Kinds(), TooLarge, UnknownFormat, UnknownAccount, Unrecognised, NoAccount, Internal)

func rejectTooLarge() *format.Rejection {
	return format.Rejectf(TooLarge, "its message is larger than the topic takes")
}
