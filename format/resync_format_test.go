package format

import (
	"reflect"
	"testing"
)

// Facts that a resync record states are the facts of its event, and stating those
// again changes nothing.
func FuzzResync(f *testing.F) {
	for _, seed := range []string{
		`{"facts":{"name":"agent.state","agent_id":"1002","state":"break"},"timestamp":1795169706.25}`,
		`{"facts":{"name":"queue.call_ended","call_id":"c","wait_ms":0,"talk_ms":9007199254740993}}`,
		`{"facts":{"name":"other","caller":"\u0000","caller":"\ud800"}}`, `{"facts":{"name":"agent.nap"}}`,
		`{"facts":[]}`,
	} {
		f.Add([]byte(seed))
	}

	resync := ResyncFormat("test.resync", nil)
	f.Fuzz(func(t *testing.T, record []byte) {
		var fields Fields
		e, err := resync.ReadEvent(record, &fields)
		if err != nil {
			return
		}

		stated := e.Facts
		stated.TimestampMS = 0 // the record's own, beside the facts
		again := append([]byte(`{"facts":`), stated.Append(nil)...)
		second, err := resync.ReadEvent(append(again, '}'), &fields)
		second.Facts.TimestampMS = e.Facts.TimestampMS
		if err != nil || !reflect.DeepEqual(second.Facts, e.Facts) || second.Type != e.Type ||
			e.Facts.Reason != "resync" && e.Facts.Reason != "parked" {
			t.Errorf("%s is read as %+v, again as %+v, %v", record, e, second, err)
		}
	})
}
