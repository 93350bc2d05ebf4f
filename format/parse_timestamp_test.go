package format

import (
	"testing"

	"trunkline/internal/jsonscan"
)

func TestUnixMillisReadsEveryUnit(t *testing.T) {
	for in, want := range map[string]int64{
		`1795169706`: 1795169706000, `"1795169706"`: 1795169706000, `1795169706.9`: 1795169706900,
		`"1795169706.1239"`: 1795169706123,
		`1.795169706e9`:     1795169706000, `1795169706190`: 1795169706190,
		`"1795169706190966"`: 1795169706190, `1795169706190966123`: 1795169706190,
		`63957388906`: 1790169706000, `63957388906190`: 1790169706190, `63957388906190966`: 1790169706190,
		`0`: 0, `"0"`: 0, `-5`: 0, `""`: 0, `"x"`: 0, `null`: 0, `{}`: 0, `true`: 0, ``: 0, `1e400`: 0, `"NaN"`: 0,
		`"Inf"`: 0,
	} {
		if got, ok := UnixMillis(jsonscan.Value(in)); ok != (want != 0) || ok && got != want {
			t.Errorf("%s: got %d, %v, want %d", in, got, ok, want)
		}
		if got, ok := UnixSeconds(jsonscan.Value(in)); ok != (want != 0) || got != want/1000 {
			t.Errorf("%s: got %d s, %v, want %d", in, got, ok, want/1000)
		}
	}
}
