package cdrindex

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"trunkline/event"
)

// CSVType is the media type of WriteCSV.
const CSVType = "text/csv; charset=utf-8; header=present"

// csvHeader has the row's field names, in their order.
var csvHeader = func() string {
	var names []string
	for _, f := range event.CDRFields() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ",") + "\r\n"
}()

// csvChunk is the size in bytes of one write.
const csvChunk = 32 << 10

// WriteCSV writes the filter's rows as CSV (RFC 4180), newest first. An error
// before wrote is true can still be answered; after it, the only way to say
// that rows are missing is to break the connection.
//
// A spreadsheet runs a cell that begins with "=" and others as a formula: such a
// value gets a leading "'" (see appendText).
func (x *Index) WriteCSV(ctx context.Context, f Filter, w io.Writer) (wrote bool, err error) {
	text := append(make([]byte, 0, csvChunk+csvChunk/4), csvHeader...)
	err = x.Each(ctx, f, func(row *event.CDR) error {
		text = appendCSV(text, row)
		if len(text) < csvChunk {
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

func appendCSV(to []byte, r *event.CDR) []byte {
	for i := range event.CDRFields() {
		if i > 0 {
			to = append(to, ',')
		}
		switch f := &event.CDRFields()[i]; f.Kind {
		case event.CDRText:
			to = appendText(to, f, *f.Text(r))
		case event.CDRTime:
			if n := *f.Time(r); n != 0 || f.Required {
				to = strconv.AppendInt(to, n, 10)
			}
		case event.CDRSeconds:
			if n := *f.Seconds(r); n != nil {
				to = strconv.AppendInt(to, *n, 10)
			}
		case event.CDRObject:
			to = appendField(to, *f.Object(r))
		}
	}
	return append(to, "\r\n"...)
}

// appendText appends a text that may come from a caller. One that a spreadsheet
// would take for a formula gets a leading "'", but for phone numbers.
func appendText(to []byte, f *event.CDRField, text string) []byte {
	if text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0 && !(isNumberField(f.Name) && isNumber(text)) {
		text = "'" + text
	}
	return appendField(to, text)
}

// isNumberField reports whether a field holds phone numbers.
func isNumberField(name string) bool {
	return name == "from" || name == "to" || strings.HasSuffix(name, "_number")
}

// isNumber reports whether text is digits, "*" and "#", perhaps after a "+".
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "+")
	return text != "" && strings.Trim(text, "0123456789*#") == ""
}

// appendField quotes what needs it, and leading or trailing space, which some
// readers would cut off.
func appendField[T string | json.RawMessage](to []byte, text T) []byte {
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
