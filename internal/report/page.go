package report

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// Page is a part of a list, newest first.
type Page[T any] struct {
	Data         []T    `json:"data"`
	PageSize     int    `json:"page_size"`
	NextStartKey string `json:"next_start_key,omitempty"` // "": the last page
}

// StartKey returns the key of the page that begins at or after an element; elements are
// ordered by time and id.
func StartKey(timestamp int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(timestamp, 10) + "." + id))
}

// ParseStartKey parses a result of StartKey of at most maxBytes.
func ParseStartKey(key string, maxBytes int) (timestamp int64, id string, ok bool) {
	if len(key) > maxBytes {
		return 0, "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || !Storable(string(text)) {
		return 0, "", false
	}
	first, id, _ := strings.Cut(string(text), ".")
	timestamp, err = strconv.ParseInt(first, 10, 64)
	return timestamp, id, err == nil && id != "" && StartKey(timestamp, id) == key
}
