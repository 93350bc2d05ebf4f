package envelope

import (
	"errors"
	"testing"
)

func TestIterationsAreBounded(t *testing.T) {
	for _, n := range []uint32{0, 1, minIterations - 1, maxIterations + 1, 1<<32 - 1} {
		if _, err := NewRoot("k", "s", n); !errors.Is(err, ErrVersion) {
			t.Errorf("%d iterations: %v", n, err)
		}
	}
}
