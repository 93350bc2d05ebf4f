package own

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// performanceFormat is the row of an agent on cc.stats: {account_id, agent_id,
// interval_start, interval_seconds, …}. Its timestamp is the end of the interval.
var performanceFormat = format.Format{
	Name: event.FormatPerformance, Topic: event.TopicRaw, Internal: true,
	Keys: jsonscan.KeysOf("account_id", "agent_id", "interval_start", "interval_seconds"),
	ReadAccount: func(f *format.Fields) (string, error) {
		return format.StrictText(f[rowAccount], "account_id")
	},
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		agent, err := format.StrictText(f[rowAgent], "agent_id")
		if err != nil {
			return format.Event{}, err
		}

		start, err := format.StrictTimestamp(f[rowStart], "interval_start")
		if err != nil {
			return format.Event{}, err
		}

		// A length in seconds is read as a time since 1970, so that the two can be added.
		length, err := format.StrictTimestamp(f[rowSeconds], "interval_seconds")
		if err != nil {
			return format.Event{}, err
		}

		end := start + length
		return format.Event{Type: event.AgentPerformance, Timestamp: end / 1000,
			Facts: event.Facts{Name: event.NameOther, AgentID: agent, TimestampMS: end}}, nil
	},
}

// Slots of the keys of performanceFormat in the fields of a record.
const (
	rowAccount = iota
	rowAgent
	rowStart
	rowSeconds
)
