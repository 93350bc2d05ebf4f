package report

import "strings"

// CSVType is the media type of a CSV (RFC 4180).
const CSVType = "text/csv; charset=utf-8; header=present"

// AppendText appends a cell with text from outside. A spreadsheet runs a cell that
// begins with "=" and others as a formula: such a text gets a leading "'".
func AppendText(to []byte, text string) []byte {
	if text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		text = "'" + text
	}
	return AppendCell(to, text)
}

// AppendNumber appends a cell with a phone number. One of digits, "*" and "#",
// perhaps after a "+", stays as it is, unlike with AppendText.
func AppendNumber(to []byte, text string) []byte {
	if digits := strings.TrimPrefix(text, "+"); digits != "" && strings.Trim(digits, "0123456789*#") == "" {
		return AppendCell(to, text)
	}
	return AppendText(to, text)
}

// AppendCell appends a cell as it is. It quotes what needs it, and leading or
// trailing space, which some readers would cut off.
func AppendCell[T ~string | ~[]byte](to []byte, text T) []byte {
	n := len(text)
	if n == 0 {
		return to
	}
	plain := text[0] != ' ' && text[n-1] != ' '
	for i := 0; i < n && plain; i++ {
		c := text[i]
		plain = c != '"' && c != ',' && c != '\r' && c != '\n'
	}
	if plain {
		return append(to, text...)
	}
	to = append(to, '"')
	for i := range n {
		if text[i] == '"' {
			to = append(to, '"')
		}
		to = append(to, text[i])
	}
	return append(to, '"')
}
