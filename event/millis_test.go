package event

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
)

func TestDurationsAreBounded(t *testing.T) {
	for ms, known := range map[int64]bool{
		0: true, 1: true, MaxDuration.Milliseconds(): true,
		-1: false, MaxDuration.Milliseconds() + 1: false, math.MaxInt64: false, math.MinInt64: false,
	} {
		var read Millis
		err := json.Unmarshal(strconv.AppendInt(nil, ms, 10), &read)
		if got := MillisOf(ms); err != nil || got != read || got.Known != known || known && got.Value != ms ||
			!known && got.Value != 0 {
			t.Errorf("%d ms: %+v, read %+v, %v", ms, got, read, err)
		}
	}
}
