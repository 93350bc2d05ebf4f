package report

import (
	"fmt"
	"strings"
)

// Conditions builds the WHERE of a query.
type Conditions struct {
	where     strings.Builder
	arguments []any
}

// Add adds a condition, in which each ? is the next argument.
func (c *Conditions) Add(condition string, args ...any) {
	if c.where.Len() == 0 {
		c.where.WriteString(" WHERE ")
	} else {
		c.where.WriteString(" AND ")
	}

	for _, arg := range args {
		before, rest, _ := strings.Cut(condition, "?")
		c.arguments = append(c.arguments, arg)
		fmt.Fprintf(&c.where, "%s$%d", before, len(c.arguments))
		condition = rest
	}

	c.where.WriteString(condition)
}

// AddIn adds the condition that the column has one of the values.
func (c *Conditions) AddIn(column string, values []string) {
	c.Add(column+" IN ("+placeholders(len(values))+")", anys(values)...)
}

// AddEqual adds the condition that the column has the value, unless that is "".
func (c *Conditions) AddEqual(column, value string) {
	if value != "" {
		c.Add(column+" = ?", value)
	}
}

// AddVisible adds the condition of what a role sees of rows with these columns; "": they have none.
func (c *Conditions) AddVisible(v *Visible, queueColumn, agentColumn string) {
	if v != nil {
		condition, args := v.Condition(queueColumn, agentColumn)
		c.Add(condition, args...)
	}
}

// OrderAfter adds the condition that rows are behind the cursor, and ends the query with the order of a list, newest
// first by two columns, and at most n rows.
func (c *Conditions) OrderAfter(after Cursor, timeColumn, idColumn string, n int) {
	if after != (Cursor{}) {
		c.Add("("+timeColumn+", "+idColumn+") < (?, ?)", after.Time, after.ID)
	}
	c.OrderAndLimit(timeColumn+" DESC, "+idColumn+" DESC", n)
}

// OrderAndLimit ends the query with its order and at most n rows. Add must not be called after it.
func (c *Conditions) OrderAndLimit(order string, n int) {
	c.arguments = append(c.arguments, n)
	fmt.Fprintf(&c.where, " ORDER BY %s LIMIT $%d", order, len(c.arguments))
}

// Text returns the WHERE, which begins with a space.
func (c *Conditions) Text() string { return c.where.String() }

// Args returns the arguments of Text.
func (c *Conditions) Args() []any { return c.arguments }
