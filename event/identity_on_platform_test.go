package event

import (
	"math"
	"strings"
	"testing"
)

func TestIdentitiesAreReadAsTheyAreWritten(t *testing.T) {
	for want, i := range map[string]Identity{
		"0b7bbb3e-5f0c-11f0-bd41-0242ac120002/4711": {"0b7bbb3e-5f0c-11f0-bd41-0242ac120002", 4711},
		"a/b/0":                            {"a/b", 0},
		"x/18446744073709551615":           {"x", math.MaxUint64},
		strings.Repeat("r", MaxRun) + "/1": {strings.Repeat("r", MaxRun), 1},
	} {
		if got := i.String(); got != want || !i.Valid() {
			t.Errorf("%+v is written %s, want %s", i, got, want)
		}
		if got, err := ParseIdentity(want); err != nil || got != i {
			t.Errorf("%s is read as %+v, %v", want, got, err)
		}
	}

	for _, s := range []string{"", "/", "/1", "x", "x/", "x/-1", "x/+1", "x/1 ", "x /1", "x\n/1", "\xff/1",
		"x/18446744073709551616", "x/000000000000000000001",
		strings.Repeat("r", MaxRun+1) + "/1", "x/99999999999999999999"} {
		if got, err := ParseIdentity(s); err == nil {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
}
