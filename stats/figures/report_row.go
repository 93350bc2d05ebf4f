package figures

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/report"
	"trunkline/stats"
)

// Row holds the figures of a queue or agent in one interval.
type Row struct {
	Kind      Kind
	AccountID string
	ID        string // of the queue or agent
	Start     int64  // of the interval, Unix seconds
	Seconds   int64  // its length

	figures []int64          // ordered as in the table
	reasons map[string]int64 // break_ms_by_reason
}

// Figure returns a figure by its name in docs/figures.md; 0 if rows of this kind do
// not have it.
func (r *Row) Figure(name string) int64 {
	i := r.Kind.table().index(name)
	if i >= 0 {
		return r.figures[i]
	}
	return 0
}

// QueueRow returns the inputs of the service levels.
func (r *Row) QueueRow() *stats.QueueRow {
	return &stats.QueueRow{Offered: r.Figure("offered"), AbandonedShort: r.Figure("abandoned_short"),
		AnsweredWithin: r.Figure("answered_within")}
}

// level is a named service level; ok is false if it has no value.
type level struct {
	name  string
	value float64
	ok    bool
}

func (r *Row) levels() []level {
	if !r.Kind.table().levels {
		return nil
	}
	q := r.QueueRow()
	level1, ok1 := q.ServiceLevel()
	level2, ok2 := q.ServiceLevelStrict()
	return []level{{"service_level", level1, ok1}, {"service_level_strict", level2, ok2}}
}

// addRow adds the figures of an older row.
func (r *Row) addRow(older *Row) {
	for i, f := range r.Kind.table().figures {
		r.figures[i] = f.add(r.figures[i], older.figures[i])
	}
	for reason, ms := range older.reasons {
		if r.reasons == nil {
			r.reasons = map[string]int64{}
		}
		r.reasons[reason] += ms
	}
}

// forgetThresholds sets the thresholds to 0: a sum of several queues has none.
func (r *Row) forgetThresholds() {
	for i, f := range r.Kind.table().figures {
		if strings.HasSuffix(f.name, "_seconds") {
			r.figures[i] = 0
		}
	}
}

// MarshalJSON returns the row in the format of cc.stats.
func (r *Row) MarshalJSON() ([]byte, error) {
	t := r.Kind.table()
	text := append(make([]byte, 0, 512), `{"account_id":`...)
	text = event.AppendString(text, r.AccountID)

	text = append(text, `,"`+t.id+`":`...)
	text = event.AppendString(text, r.ID)
	number := func(name string, n int64) {
		text = append(text, `,"`+name+`":`...)
		text = strconv.AppendInt(text, n, 10)
	}

	number("interval_start", r.Start)
	number("interval_seconds", r.Seconds)
	for i, f := range t.figures {
		number(f.name, r.figures[i])
	}

	for _, l := range r.levels() {
		if l.ok {
			text = append(text, `,"`+l.name+`":`...)
			text = strconv.AppendFloat(text, l.value, 'f', -1, 64)
		}
	}

	if len(r.reasons) > 0 {
		text = append(text, `,"`+reasonsColumn+`":`...)
		text = append(text, r.reasonsJSON()...)
	}

	return append(text, '}'), nil
}

// reasonsJSON returns break_ms_by_reason as a JSON object, "" without any reason.
func (r *Row) reasonsJSON() string {
	if len(r.reasons) == 0 {
		return ""
	}

	text := []byte{'{'}
	for i, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(event.AppendString(text, reason), ':')
		text = strconv.AppendInt(text, r.reasons[reason], 10)
	}

	return string(append(text, '}'))
}

// csvHeader returns the column names of a row.
func csvHeader(k Kind) string {
	row := Row{Kind: k, figures: make([]int64, len(k.table().figures))}
	text := "account_id," + row.Kind.table().id + ",interval_start,interval_seconds"
	for _, f := range k.table().figures {
		text += "," + f.name
	}

	for _, l := range row.levels() {
		text += "," + l.name
	}

	if k.table().byReason {
		text += "," + reasonsColumn
	}

	return text + "\r\n"
}

// appendCSV appends a row's cells, in the order of csvHeader.
func appendCSV(to []byte, r *Row) []byte {
	to = report.AppendText(to, r.AccountID)
	to = report.AppendText(append(to, ','), r.ID)
	to = strconv.AppendInt(append(to, ','), r.Start, 10)
	to = strconv.AppendInt(append(to, ','), r.Seconds, 10)

	for _, n := range r.figures {
		to = strconv.AppendInt(append(to, ','), n, 10)
	}

	for _, l := range r.levels() {
		to = append(to, ',')
		if l.ok {
			to = strconv.AppendFloat(to, l.value, 'f', -1, 64)
		}
	}

	if r.Kind.table().byReason {
		to = report.AppendCell(append(to, ','), r.reasonsJSON())
	}

	return append(to, "\r\n"...)
}

func parseReasons(text []byte) (reasons map[string]int64, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &reasons)
	}
	return reasons, err
}
