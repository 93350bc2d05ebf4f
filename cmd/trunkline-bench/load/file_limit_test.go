package load

import (
	"strings"
	"testing"
)

func TestFileLimit(t *testing.T) {
	if err := RaiseFileLimit(10); err != nil {
		t.Error(err)
	}
	if err := RaiseFileLimit(1 << 62); err == nil || !strings.Contains(err.Error(), "ulimit -Hn 4611686018427387904") {
		t.Errorf("no limit at all: %v", err)
	}
}
