package report

import (
	"io"
	"strings"
	"unicode/utf8"
)

// CSVType is the media type of a CSV (RFC 4180).
const CSVType = "text/csv; charset=utf-8; header=present"

// csvWriteBytes is the size in bytes of one write.
const csvWriteBytes = 32 << 10

// WriteCSV writes header, and a line by appendLine for each row that each yields. If
// wrote is false, the error can still be sent as a response; if it is true, only closing
// the connection shows that rows are missing.
func WriteCSV[R any](w io.Writer, header string, appendLine func([]byte, R) []byte,
	each func(yield func(R) error) error) (wrote bool, err error) {
	text := append(make([]byte, 0, csvWriteBytes+csvWriteBytes/4), header...)
	err = each(func(row R) error {
		text = appendLine(text, row)
		if len(text) < csvWriteBytes {
			return nil
		}

		wrote = true
		_, err := w.Write(text)
		text = text[:0]

		return err
	})
	if err != nil {
		return wrote, err
	}

	_, err = w.Write(text)
	return true, err
}

// AppendText appends a cell with text from outside. A spreadsheet runs a cell that
// begins with "=" and others as a formula, also with their full-width forms: such a text
// gets a leading "'".
func AppendText(dst []byte, text string) []byte {
	first, _ := utf8.DecodeRuneInString(text)
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		text = "'" + text
	}
	return AppendCell(dst, text)
}

// AppendPhoneNumber appends a cell with a phone number. A number of digits, "*" and "#",
// optionally after a "+", is unchanged, unlike with AppendText.
func AppendPhoneNumber(dst []byte, text string) []byte {
	digits := strings.TrimPrefix(text, "+")
	if digits != "" && strings.Trim(digits, "0123456789*#") == "" {
		return AppendCell(dst, text)
	}
	return AppendText(dst, text)
}

// AppendCell appends a cell unchanged, in quotes if it needs them or has leading or
// trailing space, which some readers would remove.
func AppendCell[T ~string | ~[]byte](dst []byte, text T) []byte {
	n := len(text)
	if n == 0 {
		return dst
	}

	unquoted := text[0] != ' ' && text[n-1] != ' '
	for i := 0; i < n && unquoted; i++ {
		c := text[i]
		unquoted = c != '"' && c != ',' && c != '\r' && c != '\n'
	}

	if unquoted {
		return append(dst, text...)
	}

	dst = append(dst, '"')
	for i := range n {
		if text[i] == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, text[i])
	}

	return append(dst, '"')
}
