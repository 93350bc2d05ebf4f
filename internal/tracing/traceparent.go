package tracing

// Offsets in a traceparent of version 00, 00-<trace>-<span>-<flags> (W3C Trace
// Context, section 3.2.2). Later versions only append fields.
const (
	parentLength = 55
	traceStart   = 3
	spanStart    = 36
	flagStart    = 53
)

// ValidTraceparent reports whether s is a traceparent of version 00: lower-case hex, and neither
// id all zeros. Without tracing, only valid ones are passed on.
func ValidTraceparent(s string) bool {
	if len(s) != parentLength || s[:traceStart] != "00-" || s[spanStart-1] != '-' || s[flagStart-1] != '-' {
		return false
	}
	return isNonZeroHex(s[traceStart:spanStart-1]) && isNonZeroHex(s[spanStart:flagStart-1]) && isHex(s[flagStart:])
}

// Sampled reports, without allocating, whether a traceparent has the sampled flag. It
// may return true for a malformed one, which has no trace to join.
func Sampled(parent []byte) bool {
	if len(parent) < parentLength {
		return false
	}
	flags := parent[parentLength-1]
	if 'a' <= flags && flags <= 'f' {
		flags -= 'a' - 10
	}
	return flags&1 != 0
}

func isHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isNonZeroHex(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return isHex(s)
		}
	}
	return false
}
