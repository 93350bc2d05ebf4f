package figures

import "slices"

// Kind is a kind of rows.
type Kind int

// The kinds of rows.
const (
	Queues Kind = iota
	Agents
)

// column describes the column of a figure: its name, and how the values of several
// intervals are combined.
type column struct {
	name string
	combination
}

// combination is how values are combined: here, where value is that of the older row, and in SQL.
type combination struct {
	add func(sum, value int64) int64
	sql string // of the column %[1]s
}

var (
	total   = combination{func(sum, value int64) int64 { return sum + value }, "CAST(SUM(%[1]s) AS BIGINT)"}
	highest = combination{func(sum, value int64) int64 { return max(sum, value) }, "MAX(%[1]s)"}
	// newest are thresholds, of at most a day in seconds: less than 2^17.
	newest = combination{func(sum, _ int64) int64 { return sum }, "MAX(interval_start * 131072 + %[1]s) %% 131072"}
)

// table is the table of a kind.
type table struct {
	name     string
	word     string // the kind in a record's key
	id       string // column of the queue or agent id
	figures  []column
	byReason bool // has break_ms_by_reason
	levels   bool // rows have service levels
}

var tables = [...]table{
	Queues: {name: "figures_queues", word: "queue", id: "queue_id", levels: true, figures: []column{
		{"offered", total}, {"answered", total}, {"abandoned", total}, {"abandoned_short", total},
		{"answered_within", total},
		{"transferred", total}, {"service_level_seconds", newest}, {"short_abandon_seconds", newest},
		{"wait_ms_total", total},
		{"wait_ms_max", highest}, {"abandon_wait_ms_total", total}, {"talk_ms_total", total}, {"hold_ms_total", total},
		{"wrap_up_ms_total", total},
	}},
	Agents: {name: "figures_agents", word: "agent", id: "agent_id", byReason: true, figures: []column{
		{"logged_in_ms", total}, {"available_ms", total}, {"talking_ms", total}, {"wrap_up_ms", total},
		{"break_ms", total},
		{"offered", total}, {"answered", total}, {"no_answer", total},
	}},
}

func (k Kind) table() *table { return &tables[k] }

const reasonsColumn = "break_ms_by_reason"

// columns returns the names of all columns, in the order of entry.values.
func (t *table) columns() []string {
	columns := []string{"account_id", t.id, "interval_start", "interval_seconds", "topic_partition", "event_id"}
	for _, f := range t.figures {
		columns = append(columns, f.name)
	}
	if t.byReason {
		columns = append(columns, reasonsColumn)
	}
	return columns
}

// index returns the index of a figure in Row.figures.
func (t *table) index(name string) int {
	return slices.IndexFunc(t.figures, func(f column) bool { return f.name == name })
}
