// Package entitytag computes entity tags and evaluates If-Match and If-None-Match (RFC
// 9110, 8.8.3, 13.1.1 and 13.1.2).
package entitytag

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"trunkline/internal/fault"
)

// Of returns a strong tag of an object's values: 128 bits of their hash.
func Of(values ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", values))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// Matches reports whether an existing object meets an If-Match header: it lists the
// object's tag, or is *. A weak tag never matches.
func Matches(ifMatch, tag string) bool {
	for entityTag := range strings.SplitSeq(ifMatch, ",") {
		entityTag = strings.TrimSpace(entityTag)
		if entityTag == tag || entityTag == "*" {
			return true
		}
	}
	return false
}

// NotModified reports whether a GET of an object that exists is answered with 304: its
// If-None-Match lists the object's tag, weak or not, or is *.
func NotModified(ifNoneMatch, tag string) bool {
	return Matches(ifNoneMatch, tag) || Matches(ifNoneMatch, "W/"+tag)
}

// Require returns fault.KindPrecondition if an existing object does not meet a request's
// If-Match ("": none).
func Require(ifMatch, tag string) error {
	if ifMatch == "" || Matches(ifMatch, tag) {
		return nil
	}
	return fault.New(fault.KindPrecondition, "It has changed: its ETag is %s", tag)
}
