package cdrindex

import (
	"context"
	"io"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/report"
)

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
			to = report.AppendCell(to, *f.Object(r))
		}
	}
	return append(to, "\r\n"...)
}

// isNumberField reports whether a field holds phone numbers.
func isNumberField(name string) bool {
	return name == "from" || name == "to" || strings.HasSuffix(name, "_number")
}

func appendText(to []byte, f *event.CDRField, text string) []byte {
	if isNumberField(f.Name) {
		return report.AppendNumber(to, text)
	}
	return report.AppendText(to, text)
}
