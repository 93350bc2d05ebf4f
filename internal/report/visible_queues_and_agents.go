package report

import (
	"slices"
	"strings"

	"trunkline/event"
)

// Visible limits a report to queues and agents. Nil is everything.
type Visible struct {
	Queues []string
	Agents []string
	// Extension also admits the agents with it, as event.AgentExtension finds it; "" none.
	Extension string
	// Any admits every row that has a queue or an agent.
	Any bool
}

// Admits reports whether what has the queue and the agent ("" for none) is visible.
func (v *Visible) Admits(queue, agent string) bool {
	switch {
	case v == nil:
		return true
	case v.Any:
		return queue != "" || agent != ""
	case queue != "" && slices.Contains(v.Queues, queue):
		return true
	case agent == "":
		return false
	}

	return slices.Contains(v.Agents, agent) || v.Extension != "" && event.AgentExtension(agent) == v.Extension
}

// Condition returns a condition of SQL on the columns of a row's queue and agent ("": rows
// have no such column), with a ? for each argument.
func (v *Visible) Condition(queueColumn, agentColumn string) (condition string, args []any) {
	var admitted []string
	admit := func(condition string, values ...any) {
		admitted = append(admitted, condition)
		args = append(args, values...)
	}

	if v.Any {
		for _, column := range []string{queueColumn, agentColumn} {
			if column != "" {
				admit(column + " <> ''")
			}
		}
	}

	if queueColumn != "" && len(v.Queues) > 0 {
		admit(queueColumn+" IN ("+placeholders(len(v.Queues))+")", anys(v.Queues)...)
	}
	if agentColumn != "" && len(v.Agents) > 0 {
		admit(agentColumn+" IN ("+placeholders(len(v.Agents))+")", anys(v.Agents)...)
	}
	if agentColumn != "" && v.Extension != "" {
		condition, patterns := extensionCondition(agentColumn, v.Extension)
		admit(condition, patterns...)
	}
	// A role that may see nothing gets no rows, and not those of a query without a condition.
	if len(admitted) == 0 {
		return "1 = 0", nil
	}

	return "(" + strings.Join(admitted, " OR ") + ")", args
}

// extensionCondition is event.AgentExtension as a condition of SQL: the device behind the
// first slash, up to a "@" or another slash. LIKE ignores case in SQLite, replace does not.
func extensionCondition(column, extension string) (condition string, args []any) {
	literal := likeLiteral.Replace(extension)
	like := func(patterns ...string) string {
		texts := make([]string, len(patterns))
		for i, pattern := range patterns {
			texts[i] = column + ` LIKE ? ESCAPE '\'`
			args = append(args, pattern)
		}
		return "(" + strings.Join(texts, " OR ") + ")"
	}

	condition = like(literal, literal+"@%") + " AND NOT " + like("%/%") + " OR " +
		like("%/"+literal, "%/"+literal+"@%", "%/"+literal+"/%") + " AND NOT " +
		like("%/%/"+literal, "%/%/"+literal+"@%", "%/%/"+literal+"/%")

	return "((" + condition + ") AND replace(" + column + ", ?, '') <> " + column + ")", append(args, extension)
}

var likeLiteral = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func anys(texts []string) []any {
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = text
	}
	return values
}
