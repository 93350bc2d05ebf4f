package ingest

// validTrace says whether s is a W3C traceparent header of version 00: lower
// case hex, and neither id all zeros. Anything else is not passed on.
func validTrace(s string) bool {
	const (
		length     = 55 // 00-<32>-<16>-<2>
		traceStart = 3
		spanStart  = 36
		flagStart  = 53
	)
	if len(s) != length || s[:traceStart] != "00-" || s[spanStart-1] != '-' || s[flagStart-1] != '-' {
		return false
	}
	return nonZeroHex(s[traceStart:spanStart-1]) && nonZeroHex(s[spanStart:flagStart-1]) && hex(s[flagStart:])
}

func hex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func nonZeroHex(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return hex(s)
		}
	}
	return false
}
