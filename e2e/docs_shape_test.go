package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What may be otherwise at every run: times, addresses, positions, and words with a digit
// (ids, keys, figures), but for whole numbers below 100,000, which are as the
// page has them. A salt may happen to have no digit.
var varying = []struct {
	pattern *regexp.Regexp
	shape   string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`(^|[^"A-Za-z0-9.-])[A-Za-z0-9.-]*:\d{1,5}\b`), "${1}HOST:PORT"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{22}==`), "WORD"},
	{regexp.MustCompile(`[\pL\d_.+/@%-]*\d[\pL\d_.+/@%-]*=*`), "WORD"},
}

var small = regexp.MustCompile(`^[\d]{1,5}$`)

// shape is a line without what varies.
func shape(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllStringFunc(line, func(found string) string {
			if small.MatchString(found) {
				return found
			}
			return v.pattern.ReplaceAllString(found, v.shape)
		})
	}
	return strings.Join(strings.Fields(line), "")
}

// statements are lines, with those that begin with a space or a bracket's end
// joined to the one before: JSON may be broken where it pleases.
func statements(lines []string) []string {
	var whole []string
	for _, line := range lines {
		if len(whole) > 0 && line != "" && strings.ContainsAny(line[:1], " \t}]") {
			whole[len(whole)-1] += line
		} else {
			whole = append(whole, line)
		}
	}
	return whole
}

const elided = "…"

// differ returns the difference of the output from that on the page, in which "…"
// stands for anything, and alone on a line for any lines. Lines may come in
// another order, as those of two programs do.
func differ(shown, came []string, moreIsFine bool) error {
	left := statements(came)
	for _, line := range statements(shown) {
		if line == elided {
			moreIsFine = true
			continue
		}
		parts := strings.Split(shape(line), elided)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern, err := regexp.Compile("^" + strings.Join(parts, ".*") + "$")
		if err != nil {
			return err
		}
		at := slices.IndexFunc(left, func(one string) bool { return pattern.MatchString(shape(one)) })
		if at < 0 {
			return fmt.Errorf("the page shows\n\t%s\nand no line of these is like it:\n\t%s", line, strings.Join(left, "\n\t"))
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(left) > 0 && !moreIsFine {
		return fmt.Errorf("the page does not show\n\t%s\n(write … where something may be otherwise, or on a line alone for any lines)", strings.Join(left, "\n\t"))
	}
	return nil
}
