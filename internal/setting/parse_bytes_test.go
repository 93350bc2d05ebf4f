package setting

import "testing"

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "1": 1, "512MiB": 512 << 20, "1 GiB": 1 << 30, "3KiB": 3 << 10,
		"7B": 7} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}

	for _, text := range []string{"", "-1", "MiB", "1.5GiB", "9223372036854775807GiB", "1mb", "0x10"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}
