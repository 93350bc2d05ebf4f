package encryption

import (
	"strconv"
	"strings"

	"trunkline/internal/entitytag"
)

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// matchesIfMatch reports whether an If-Match header matches. * does not match an account
// without a configuration.
func matchesIfMatch(ifMatch string, s *accountConfig) bool {
	if strings.TrimSpace(ifMatch) == "*" {
		return s.exists
	}
	return entitytag.Matches(ifMatch, etag(s.revision))
}
