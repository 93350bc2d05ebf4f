package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Parts that may differ at every run: times, addresses, positions, and words with a digit (ids,
// keys, figures), except whole numbers below 100,000, which must be equal to the page's. A salt
// may have no digit by chance.
var variableParts = []struct {
	pattern *regexp.Regexp
	shape   string // what lineShape puts in its place
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`(^|[^"A-Za-z0-9.-])[A-Za-z0-9.-]*:\d{1,5}\b`), "${1}HOST:PORT"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{22}==`), "WORD"},
	{regexp.MustCompile(`[\pL\d_.+/@%-]*\d[\pL\d_.+/@%-]*=*`), "WORD"},
}

// shortNumber matches the numbers that must be the page's.
var shortNumber = regexp.MustCompile(`^[\d]{1,5}$`)

// lineShape returns a line with placeholders for its variable parts.
func lineShape(line string) string {
	for _, v := range variableParts {
		line = v.pattern.ReplaceAllStringFunc(line, func(found string) string {
			if shortNumber.MatchString(found) {
				return found
			}
			return v.pattern.ReplaceAllString(found, v.shape)
		})
	}
	return strings.Join(strings.Fields(line), "")
}

// joinContinuedLines joins lines that begin with a space or a closing bracket to the preceding line,
// because JSON may be broken anywhere.
func joinContinuedLines(lines []string) []string {
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

// compareOutput returns the difference between the output and that of the page, in which "…" stands for
// any text, and on a line of its own for any lines. The order of lines may differ, because two
// programs may print at the same time.
func compareOutput(shown, came []string, moreIsFine bool) error {
	left := joinContinuedLines(came)
	for _, line := range joinContinuedLines(shown) {
		if line == elided {
			moreIsFine = true
			continue
		}

		parts := strings.Split(lineShape(line), elided)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}

		pattern, err := regexp.Compile("^" + strings.Join(parts, ".*") + "$")
		if err != nil {
			return err
		}

		at := slices.IndexFunc(left, func(one string) bool { return pattern.MatchString(lineShape(one)) })
		if at < 0 {
			return fmt.Errorf("the page shows\n\t%s\nand no line of these is like it:\n\t%s", line,
				strings.Join(left, "\n\t"))
		}

		left = slices.Delete(left, at, at+1)
	}

	if len(left) > 0 && !moreIsFine {
		return fmt.Errorf(
			"the page does not show\n\t%s\n(write … where something may be otherwise, or on a line alone for any lines)",
			strings.Join(left, "\n\t"))
	}

	return nil
}
