package report

import (
	"fmt"
	"strings"
)

// Where builds the conditions of a SELECT, its order and its limit.
type Where struct {
	text strings.Builder
	Args []any
}

// Add adds a condition, in which each ? is the next argument.
func (w *Where) Add(condition string, args ...any) {
	if w.text.Len() == 0 {
		w.text.WriteString(" WHERE ")
	} else {
		w.text.WriteString(" AND ")
	}
	for _, arg := range args {
		before, rest, _ := strings.Cut(condition, "?")
		w.Args = append(w.Args, arg)
		fmt.Fprintf(&w.text, "%s$%d", before, len(w.Args))
		condition = rest
	}
	w.text.WriteString(condition)
}

// AddVisible adds the condition of what a role sees.
func (w *Where) AddVisible(v *Visible, queueColumn, agentColumn string) {
	if v != nil {
		condition, args := v.Condition(queueColumn, agentColumn)
		w.Add(condition, args...)
	}
}

// AddText adds the condition that a column has a value, unless that is "".
func (w *Where) AddText(column, value string) {
	if value != "" {
		w.Add(column+" = ?", value)
	}
}

// OrderAndLimit ends the query with its order and the number of rows.
func (w *Where) OrderAndLimit(order string, n int) {
	w.Args = append(w.Args, n)
	fmt.Fprintf(&w.text, " ORDER BY %s LIMIT $%d", order, len(w.Args))
}

// String returns the text that follows the names of the tables.
func (w *Where) String() string { return w.text.String() }
