package encryption

import (
	"strconv"
	"strings"
)

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// matches evaluates an If-Match header (RFC 9110, 13.1.1): a list of entity
// tags, or * for anything that exists. A weak tag never matches.
func matches(ifMatch string, s *state) bool {
	if strings.TrimSpace(ifMatch) == "*" {
		return s.exists
	}
	for tag := range strings.SplitSeq(ifMatch, ",") {
		if strings.TrimSpace(tag) == etag(s.revision) {
			return true
		}
	}
	return false
}
