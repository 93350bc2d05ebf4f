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

// WriteCSV writes the filter's rows as CSV (RFC 4180), newest first, as
// report.WriteCSV does.
func (x *Index) WriteCSV(ctx context.Context, f Filter, w io.Writer) (wrote bool, err error) {
	return x.rows(f, kindExport).WriteCSV(ctx, w, csvHeader, appendCSV)
}

func appendCSV(dst []byte, r *event.CDR) []byte {
	for i := range event.CDRFields() {
		if i > 0 {
			dst = append(dst, ',')
		}

		switch f := &event.CDRFields()[i]; f.Kind {
		case event.CDRText:
			dst = appendText(dst, f, *f.Text(r))
		case event.CDRTime:
			n := *f.Time(r)
			if n != 0 || f.Required {
				dst = strconv.AppendInt(dst, n, 10)
			}
		case event.CDRSeconds:
			n := *f.Seconds(r)
			if n != nil {
				dst = strconv.AppendInt(dst, *n, 10)
			}
		case event.CDRObject:
			dst = report.AppendCell(dst, *f.Object(r))
		}
	}

	return append(dst, "\r\n"...)
}

// isNumberField reports whether a field holds phone numbers.
func isNumberField(name string) bool {
	return name == "from" || name == "to" || strings.HasSuffix(name, "_number")
}

func appendText(dst []byte, f *event.CDRField, text string) []byte {
	if isNumberField(f.Name) {
		return report.AppendPhoneNumber(dst, text)
	}
	return report.AppendText(dst, text)
}
