package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/pflag"
)

// Table writes rows under a header, columns aligned.
func Table(w io.Writer, header []string, rows [][]string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	return out.Flush()
}

// List writes rows as a table, or as one JSON array.
func List[T any](w io.Writer, asJSON bool, rows []T, header []string, cells func(T) []string) error {
	if asJSON {
		return JSONLine(w, append([]T{}, rows...)) // [], never null
	}
	table := make([][]string, len(rows))
	for i, row := range rows {
		table[i] = cells(row)
	}
	return Table(w, header, table)
}

// JSONListFlag registers --json of a command that calls List.
func JSONListFlag(flags *pflag.FlagSet) (asJSON *bool) {
	return flags.Bool("json", false, "print a JSON array")
}

// JSONLine writes v as JSON on a line of its own.
func JSONLine(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// OrDash returns s, or "-" for an empty table cell.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Printable replaces control characters, so that text from outside cannot move the terminal's
// cursor.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
