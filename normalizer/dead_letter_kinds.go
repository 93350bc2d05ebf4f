package normalizer

import "trunkline/format"

// Kinds of dead letters, in addition to those of the formats.
const (
	TooLarge       format.Kind = "too_large"       // its message exceeds the limit of the topic
	UnknownFormat  format.Kind = "unknown_format"  // the format header names no format of this topic
	UnknownAccount format.Kind = "unknown_account" // it names an account that does not exist
	Unrecognised   format.Kind = "unrecognised"    // no format header, and unknown keys
	NoAccount      format.Kind = "no_account"      // neither the record nor its key names an account
	Internal       format.Kind = "internal"        // normalizing it panicked, or failed maxFailures times
)

var deadLetterKinds = append(format.Kinds(), TooLarge, UnknownFormat, UnknownAccount, Unrecognised, NoAccount, Internal)

func tooLargeRejection() *format.Rejection {
	return format.Rejectf(TooLarge, "its message is larger than the topic takes")
}
