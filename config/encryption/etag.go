package encryption

import (
	"strconv"
	"strings"

	"trunkline/internal/entitytag"
)

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// matchesIfMatch evaluates an If-Match header; * does not match a configuration that was
// never made.
func matchesIfMatch(ifMatch string, s *state) bool {
	if strings.TrimSpace(ifMatch) == "*" {
		return s.exists
	}
	return entitytag.Matches(ifMatch, etag(s.revision))
}
