package load

import (
	"bytes"
	"errors"
	"testing"

	"trunkline/internal/wsframe"
)

func TestParseFrame(t *testing.T) {
	for _, length := range []int{0, 1, 125, 126, 127, 1<<16 - 1, 1 << 16, 1 << 20} {
		payload := bytes.Repeat([]byte("p"), length)
		wire := append(serverFrame(wsframe.Text, true, payload), "next"...)
		f, size, whole, err := parseFrame(wire)
		if err != nil || !whole || size != len(wire)-4 || f.Opcode != wsframe.Text || !f.Fin ||
			!bytes.Equal(f.payload, payload) {
			t.Errorf("length %d: size %d, whole %v, %v", length, size, whole, err)
		}

		for have := range min(len(wire)-4, 200) {
			_, need, whole, err := parseFrame(wire[:have])
			if err != nil || whole || need <= have || need > len(wire)-4 {
				t.Fatalf("length %d, %d bytes of it: need %d, whole %v, %v", length, have, need, whole, err)
			}
		}
	}
}

func TestParseFrameLimitsTheSize(t *testing.T) {
	for name, wire := range map[string][]byte{
		"more than maxFrame":          {0x81, 127, 0, 0, 0, 0, 0, 0x40, 0, 1},
		"more than there are numbers": {0x81, 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
	} {
		if _, _, _, err := parseFrame(wire); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
