package setting

import (
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

// mask replaces a secret wherever settings are shown.
const mask = "********"

// Secret is text that is never shown: printed or logged it is a mask. Convert it to
// string to use it.
type Secret string

// String returns the mask, or "" when nothing is set.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// LogValue keeps the secret out of the log.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// URL is an address with a password in it. Printed or logged, user, password
// and query are masked. Convert it to string to use it.
type URL string

// String returns the address without its secrets; text that is not a URL is masked
// completely.
func (u URL) String() string {
	if u == "" {
		return ""
	}

	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Host == "" {
		return mask
	}

	shown := parsed.Scheme + "://"
	if parsed.User != nil {
		shown += mask + "@"
	}

	shown += parsed.Host + parsed.EscapedPath()
	if parsed.RawQuery != "" {
		shown += "?" + mask
	}

	return shown
}

// LogValue keeps the secrets out of the log.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// Bytes is a size, written as a number of bytes or with KiB, MiB or GiB.
type Bytes int64

var units = [...]struct {
	name string
	size Bytes
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns the shortest exact form, as it may be written in the file.
func (b Bytes) String() string {
	for _, unit := range units[:3] {
		if b != 0 && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

var errBytes = errors.New("want a size such as 1048576 or 512MiB")

func parseBytes(text string) (Bytes, error) {
	number, size := text, Bytes(1)
	for _, unit := range units {
		if cut, ok := strings.CutSuffix(text, unit.name); ok {
			number, size = strings.TrimSpace(cut), unit.size
			break
		}
	}

	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > int64(1<<62)/int64(size) {
		return 0, errBytes
	}

	return Bytes(n) * size, nil
}
