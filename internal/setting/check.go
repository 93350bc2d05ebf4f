package setting

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is one invalid setting.
type Problem struct {
	Where string // "conf.yaml:3", "TRUNKLINE_LISTEN", "--listen"; "" if the value is invalid in any source
	Key   string // the setting; "" for the file itself
	Text  string // what is invalid and what to set instead
}

// String returns the place, the key and the text of the problem.
func (p Problem) String() string {
	text := p.Text
	for _, prefix := range []string{p.Key, p.Where} {
		if prefix != "" {
			text = prefix + ": " + text
		}
	}
	return text
}

// Problems are all invalid settings; as an error it is never empty.
type Problems []Problem

// Error returns the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Group is a struct of settings that can check its values. Validate checks only the
// values: the package that opens a file or server reports whether it exists.
type Group interface {
	Validate(*Check)
}

// Validate returns the problems of a group of settings, nil for none. key is the
// group's, as "fanout"; "" for the top level.
func Validate(key string, g Group) error {
	c := &Check{groupKey: key, problems: new(Problems)}
	g.Validate(c)
	if len(*c.problems) == 0 {
		return nil
	}
	return *c.problems
}

// Check collects the problems of a group's values. Its methods take the name of
// a setting within the group.
type Check struct {
	groupKey string // the group's key
	problems *Problems
}

// Group returns a Check of the group called name within c's; its problems are
// among c's.
func (c *Check) Group(name string) *Check { return &Check{c.Key(name), c.problems} }

// Key returns the whole key of a setting, for texts that name another one.
func (c *Check) Key(name string) string {
	if c.groupKey == "" {
		return name
	}
	return c.groupKey + "." + name
}

// Must adds a problem unless ok. Durations among args are printed without zero
// units.
func (c *Check) Must(ok bool, name, format string, args ...any) {
	if ok {
		return
	}

	for i, arg := range args {
		d, isDuration := arg.(time.Duration)
		if isDuration {
			args[i] = FormatDuration(d)
		}
	}

	*c.problems = append(*c.problems, Problem{Key: c.Key(name), Text: fmt.Sprintf(format, args...)})
}

// NoError adds err as a problem.
func (c *Check) NoError(err error, name string) { c.Must(err == nil, name, "%v", err) }

// OneOf checks a word.
func (c *Check) OneOf(name, value string, allowed ...string) {
	shown := slices.Clone(allowed)
	for i, word := range shown {
		if word == "" {
			shown[i] = `""`
		}
	}
	c.Must(slices.Contains(allowed, value), name, "want %s, got %q", strings.Join(shown, ", "), value)
}

// Together checks two settings that must both be set or both be unset.
func (c *Check) Together(nameA, a, nameB, b string) {
	c.Must(a == "" || b != "", nameB, "%s needs it", c.Key(nameA))
	c.Must(b == "" || a != "", nameA, "%s needs it", c.Key(nameB))
}

// Positive checks a duration.
func (c *Check) Positive(name string, d time.Duration) {
	c.Must(d > 0, name, "must be longer than 0, is %s", d)
}

// NotNegative checks a number.
func (c *Check) NotNegative(name string, n int) {
	c.Must(n >= 0, name, "must not be negative, is %d", n)
}

// AtLeastOne checks a number.
func (c *Check) AtLeastOne(name string, n int) {
	c.Must(n >= 1, name, "must be at least 1, is %d", n)
}

// Quote quotes an address for a message. Text that may contain a password is masked:
// people set the URL of a service in place of its host and port.
func Quote(address string) string {
	if strings.Contains(address, "@") {
		return mask
	}
	return strconv.Quote(address)
}

// HostPort checks an address to listen on, and returns its host.
func (c *Check) HostPort(name, address string) (host string) {
	host, port, err := net.SplitHostPort(address)
	_, portErr := strconv.ParseUint(port, 10, 16)
	c.Must(err == nil && portErr == nil, name, "want host:port or :port, got %s", Quote(address))
	return host
}

// Dialable checks an address to connect to.
func (c *Check) Dialable(name, address string) {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	c.Must(err == nil && portErr == nil && host != "" && n > 0, name, "want host:port, got %s", Quote(address))
}

// SecureURL parses an https URL without user and fragment. http is allowed to
// this machine.
func SecureURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, false
	}
	address, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && address.IsLoopback()
	return u, u.Scheme == "https" || u.Scheme == "http" && local
}
